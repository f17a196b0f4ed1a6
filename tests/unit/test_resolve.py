"""Which endpoint a worker gets: one row a rule."""

from __future__ import annotations

import pytest

from orchestrator.errors import UsageError
from orchestrator.fleet.resolve import Asked, is_name, origins, resolve, saved_name
from orchestrator.fleet.spec import Endpoint, EndpointKind

SAVED = Endpoint("http://saved/v1", "saved-m", 70000, key_env="SAVED_KEY", source="saved (f)")
HERMES = Endpoint("http://hermes/v1", "hermes-m", 80000, source="Hermes profile default (f)")
HCA = {"HCA_ENDPOINT": "http://hca/v1", "HCA_MODEL_NAME": "hca-m"}
OPENAI = {"OPENAI_BASE_URL": "http://base/v1", "OPENAI_API_KEY": "x", "HERMES_MODEL": "openai-m", **HCA}
HERMUX = {"HERMUX_ENDPOINT": "http://hermux/v1", "HERMUX_MODEL": "hermux-m", **OPENAI}


@pytest.mark.parametrize(
    ("flags", "env", "saved", "hermes", "expected"),
    [
        (Asked("http://flag"), HERMUX, SAVED, HERMES, ("http://flag", "hermux-m", "", "flags")),
        (Asked("http://flag", "m", "K"), HERMUX, SAVED, HERMES, ("http://flag", "m", "K", "flags")),
        (
            Asked(),
            HERMUX,
            SAVED,
            HERMES,
            ("http://hermux/v1", "hermux-m", "", "environment (HERMUX_ENDPOINT)"),
        ),
        (
            Asked(),
            OPENAI,
            SAVED,
            HERMES,
            ("http://base/v1", "openai-m", "OPENAI_API_KEY", "environment (OPENAI_BASE_URL)"),
        ),
        (
            Asked(),
            {**OPENAI, "OPENAI_API_BASE": "http://api"},
            SAVED,
            HERMES,
            ("http://api", "openai-m", "OPENAI_API_KEY", "environment (OPENAI_API_BASE)"),
        ),
        (Asked(), HCA, SAVED, HERMES, ("http://hca/v1", "hca-m", "", "environment (HCA_ENDPOINT)")),
        (
            Asked(),
            {"OPENAI_API_KEY": "x"},
            SAVED,
            HERMES,
            ("http://saved/v1", "saved-m", "SAVED_KEY", "saved (f)"),
        ),
        (Asked(), {}, None, HERMES, ("http://hermes/v1", "hermes-m", "", HERMES.source)),
        (Asked(model="other"), {}, SAVED, HERMES, ("http://saved/v1", "other", "SAVED_KEY", "saved (f)")),
        (
            Asked(key_env="K"),
            HCA,
            SAVED,
            HERMES,
            ("http://hca/v1", "hca-m", "K", "environment (HCA_ENDPOINT)"),
        ),
        (
            Asked(),
            {"OPENAI_BASE_URL": "  "},
            SAVED,
            None,
            ("http://saved/v1", "saved-m", "SAVED_KEY", "saved (f)"),
        ),
    ],
)
def test_the_first_source_wins(
    flags: Asked,
    env: dict[str, str],
    saved: Endpoint | None,
    hermes: Endpoint | None,
    expected: tuple[str, str, str, str],
) -> None:
    found = resolve(flags, env, saved=saved, hermes=hermes)
    assert (found.base_url, found.model, found.key_env, found.source) == expected
    assert found.kind is EndpointKind.OPENAI


def test_a_key_stays_with_its_server() -> None:
    env = {"OPENAI_API_KEY": "x", "HERMUX_ENDPOINT": "http://elsewhere/v1"}
    assert resolve(Asked(), env).key_env == ""
    assert resolve(Asked("http://other/v1"), OPENAI).key_env == ""
    assert resolve(Asked(), {**env, "HERMUX_API_KEY": "y"}).key_env == "HERMUX_API_KEY"
    assert resolve(Asked(), {**env, "HERMUX_KEY_ENV": "OPENAI_API_KEY"}).key_env == "OPENAI_API_KEY"


def test_the_rehearsal_model_is_last_and_can_be_asked_for() -> None:
    last = resolve(Asked(), {"OPENAI_API_KEY": "x", "HERMUX_MODEL": "m"})
    assert last.kind is EndpointKind.REHEARSAL and last.base_url == "" and "no endpoint" in last.source
    for asked, env in ((Asked("rehearsal"), OPENAI), (Asked(), {**OPENAI, "HERMUX_ENDPOINT": "Rehearsal"})):
        assert resolve(asked, env, saved=SAVED).kind is EndpointKind.REHEARSAL


def test_a_model_alone_never_means_the_rehearsal_model() -> None:
    with pytest.raises(UsageError) as refused:
        resolve(Asked(model="gpt"), {})
    assert "'gpt'" in str(refused.value) and "--endpoint" in refused.value.hint


def test_a_declared_context() -> None:
    assert resolve(Asked(), {"HERMUX_CONTEXT_LENGTH": "90000"}, saved=SAVED).context_length == 90000
    with pytest.raises(UsageError):
        resolve(Asked(), {"HERMUX_CONTEXT_LENGTH": "lots"}, saved=SAVED)


GPU = Endpoint("http://gpu/v1", "gpu-m", 90000, key_env="GPU_KEY", source="saved as gpu (f)", name="gpu")


@pytest.mark.parametrize(
    ("flags", "env", "name"),
    [
        (Asked(), {}, ""),
        (Asked("gpu"), HERMUX, "gpu"),
        (Asked(" GPU "), {}, "gpu"),
        (Asked(), {"HERMUX_ENDPOINT": "gpu"}, "gpu"),
        (Asked("http://h/v1"), {"HERMUX_ENDPOINT": "gpu"}, None),
        (Asked("host:8000"), {}, None),
        (Asked("host.example"), {}, None),
        (Asked("localhost"), {}, None),
        (Asked("rehearsal"), {}, None),
        (Asked(), OPENAI, None),
        (Asked(), {"OPENAI_API_BASE": "gpu"}, None),
        (Asked(), {"HERMUX_ENDPOINT": "gpu", **OPENAI}, "gpu"),
    ],
)
def test_which_saved_endpoint_is_meant(flags: Asked, env: dict[str, str], name: str | None) -> None:
    assert saved_name(flags, env) == name


def test_a_saved_name_brings_its_key_and_model() -> None:
    found = resolve(Asked("gpu"), {"HERMUX_API_KEY": "x"}, saved=GPU)
    assert (found.base_url, found.model, found.key_env, found.name) == (
        "http://gpu/v1",
        "gpu-m",
        "GPU_KEY",
        "gpu",
    )
    assert (found.source, found.given) == ("flags: saved as gpu (f)", ("endpoint",))
    assert resolve(Asked(), {}, saved=GPU).given == ()
    other = resolve(Asked(model="m", key_env="K"), {}, saved=GPU)
    assert other.given == ("model", "key") and other.context_length == 0, "another model, another context"
    assert resolve(Asked(model="gpu-m"), {}, saved=GPU).context_length == 90000
    assert resolve(Asked(), {**HERMUX, "HERMUX_KEY_ENV": "K"}).given == ("endpoint", "model", "key")
    assert resolve(Asked("rehearsal"), {}).given == ("endpoint",)
    assert resolve(Asked(), {}).given == ()


@pytest.mark.parametrize("flags", [Asked(key_env="sk-canary"), Asked("rehearsal", key_env="sk-canary")])
def test_a_key_without_an_endpoint_is_refused_and_not_repeated(flags: Asked) -> None:
    with pytest.raises(UsageError, match="--key-env") as refused:
        resolve(flags, {})
    assert "canary" not in str(refused.value) + refused.value.hint


def test_words_that_are_names() -> None:
    assert [
        word for word in ("gpu", "GPU-2", "a_b", "h.x", "h:1", "h/v1", "", "localhost") if is_name(word)
    ] == [
        "gpu",
        "GPU-2",
        "a_b",
    ]


@pytest.mark.parametrize(
    ("flags", "env", "saved", "told"),
    [
        (Asked(), {}, GPU, ("saved as gpu (f)",) * 4),
        (Asked(model="m"), {}, GPU, ("saved as gpu (f)", "-m", "saved as gpu (f)", "the server says")),
        (
            Asked("http://h/v1", key_env="K"),
            {"HERMUX_MODEL": "m", "HERMUX_CONTEXT_LENGTH": "90000"},
            None,
            ("flags", "environment (HERMUX_MODEL)", "--key-env", "environment (HERMUX_CONTEXT_LENGTH)"),
        ),
        (
            Asked(),
            OPENAI,
            None,
            (
                "environment (OPENAI_BASE_URL)",
                "environment (HERMES_MODEL)",
                "environment (OPENAI_API_KEY)",
                "the server says",
            ),
        ),
        (
            Asked(),
            {"HCA_ENDPOINT": "h"},
            None,
            ("environment (HCA_ENDPOINT)", "the server says", "", "the server says"),
        ),
    ],
)
def test_who_says_each_value(
    flags: Asked, env: dict[str, str], saved: Endpoint | None, told: tuple[str, ...]
) -> None:
    found = origins(resolve(flags, env, saved=saved), flags, env)
    assert (found["url"], found["model"], found["key"], found["context"]) == told
