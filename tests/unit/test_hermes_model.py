"""The user's own Hermes model block: what is copied, what never is, and where its key comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.fleet.spec import Endpoint
from orchestrator.health.endpoint import key_value
from orchestrator.hermes.model import read_hermes_model

CANARY = "sk-canary-4711"


def write(root: Path, text: str, name: str = "config.yaml") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def found(root: Path) -> Endpoint:
    endpoint, why = read_hermes_model(root)
    assert endpoint is not None, why
    return endpoint


def test_a_custom_endpoint(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "model: {provider: custom, base_url: 'http://h/v1', default: m, api_key: '${MY_KEY}', context_length: 70000}",
    )
    assert found(tmp_path) == Endpoint(
        "http://h/v1", "m", 70000, key_env="hermes:MY_KEY", source=f"Hermes profile default ({path})"
    )


@pytest.mark.parametrize(
    ("text", "url", "model", "key_env"),
    [
        ("model: {base_url: http://h/v1, model: m}", "http://h/v1", "m", ""),
        ("model: {provider: custom, base_url: http://h/v1, api_key: no-key-required}", "http://h/v1", "", ""),
        (
            f"model: {{provider: auto, base_url: http://h, api_key: {CANARY}}}",
            "http://h",
            "",
            "hermes:api_key",
        ),
        (
            "model: {provider: 'custom:Local', default: big}\n"
            "custom_providers: [{name: local, base_url: http://l/v1, key_env: LK, model: small}]",
            "http://l/v1",
            "big",
            "hermes:LK",
        ),
        (
            "model: {provider: mine}\nproviders: {mine: {base_url: http://p/v1, default_model: pm}}",
            "http://p/v1",
            "pm",
            "",
        ),
        (
            "model: {provider: openrouter, default: a/b}",
            "https://openrouter.ai/api/v1",
            "a/b",
            "hermes:OPENROUTER_API_KEY",
        ),
    ],
)
def test_forms(text: str, url: str, model: str, key_env: str, tmp_path: Path) -> None:
    write(tmp_path, text)
    endpoint = found(tmp_path)
    assert (endpoint.base_url, endpoint.model, endpoint.key_env) == (url, model, key_env)
    assert CANARY not in repr(endpoint)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "not there"),
        ("", "empty"),
        ("model: [", "not valid YAML"),
        ("model: gpt-5", "no model block"),
        ("display: {}", "no model block"),
        ("model: {provider: nous, default: m}", "'nous' is Hermes' own login"),
        ("model: {provider: openai-codex, base_url: http://h}", "'openai-codex' is Hermes' own login"),
        ("model: {provider: custom}", "no base_url"),
        (
            "model: {provider: custom, base_url: http://h, api_mode: anthropic_messages}",
            "'anthropic_messages'",
        ),
    ],
)
def test_what_is_not_copied_says_why(text: str | None, why: str, tmp_path: Path) -> None:
    if text is not None:
        write(tmp_path, text)
    endpoint, reason = read_hermes_model(tmp_path)
    assert endpoint is None and why in reason and str(tmp_path) in reason


def test_the_profile_in_use_counts(tmp_path: Path) -> None:
    write(tmp_path, "model: {base_url: http://root/v1}")
    write(tmp_path, "model: {base_url: http://work/v1}", "profiles/work/config.yaml")
    assert found(tmp_path).base_url == "http://root/v1"
    write(tmp_path, "work\n", "active_profile")
    assert found(tmp_path).base_url == "http://work/v1"
    write(tmp_path, "../../etc\n", "active_profile")
    assert found(tmp_path).base_url == "http://root/v1"


def test_the_key_is_found_as_hermes_finds_it(tmp_path: Path) -> None:
    env = {"HERMES_HOME": str(tmp_path), "HOME": str(tmp_path)}
    write(tmp_path, "model: {base_url: http://h/v1, api_key: '${MY_KEY}'}")
    assert key_value(found(tmp_path), {**env, "MY_KEY": "from-env"}) == "from-env"
    write(tmp_path, "# keys\nexport MY_KEY='from-file' # mine\nOTHER=x\n", ".env")
    assert key_value(found(tmp_path), {**env, "MY_KEY": "from-env"}) == "from-file"
    write(tmp_path, f"model: {{base_url: http://h/v1, api_key: {CANARY}}}")
    assert key_value(found(tmp_path), env) == CANARY
