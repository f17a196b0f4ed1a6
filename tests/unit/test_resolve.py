"""Which endpoint a worker gets: one row a rule."""

from __future__ import annotations

import pytest

from orchestrator.errors import UsageError
from orchestrator.fleet.resolve import Asked, resolve
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
