"""The model block of the user's own Hermes profile: read, never changed, and never an OAuth login.

Format: `config.yaml` of Hermes 0.19 and 0.22 (`model`, `custom_providers`, `providers`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.fleet.spec import Endpoint
from orchestrator.hermes.install import hermes_root

FROM_HERMES = "hermes:"
"""Begins the key name of an endpoint that was copied: `hermes:NAME` is a variable as Hermes sees it
(its `.env`, then the environment), `hermes:api_key` the literal key in the model block."""
_LITERAL = "api_key"
_KNOWN = {
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "openai-api": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
}


def read_hermes_model(root: Path) -> tuple[Endpoint | None, str]:
    """Return the endpoint of the user's default profile below `root`, or None and the reason.

    The default profile is the one that `hermes profile use` named, else the root itself.
    """
    home = default_home(root)
    return read_profile_model(home, "default" if home == root else home.name)


def read_profile_model(home: Path, name: str) -> tuple[Endpoint | None, str]:
    """Return the endpoint in one profile's config.yaml, or None and the reason."""
    path = home / "config.yaml"
    config, why = _config(path)
    if why:
        return None, why
    block, why = _block(config)
    if why:
        return None, f"{path}: {why}"
    return _endpoint(block, f"Hermes profile {name} ({path})"), ""


def hermes_key(name: str, env: Mapping[str, str]) -> str:
    """Return the value behind a `hermes:…` key name, "" when there is none."""
    home = default_home(hermes_root(env))
    variable = name.removeprefix(FROM_HERMES)
    if variable == _LITERAL:
        block, _ = _block(_config(home / "config.yaml")[0])
        return str(block.get("api_key") or "").strip()
    return read_dotenv(home / ".env").get(variable) or env.get(variable, "").strip()


def default_home(root: Path) -> Path:
    """Return the home of the profile that a bare `hermes` uses."""
    try:
        name = (root / "active_profile").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return root
    home = root / "profiles" / name
    return home if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name) and home.is_dir() else root


def read_profile_config(home: Path) -> Mapping[str, Any]:
    """Return what a profile's config.yaml says, {} where it cannot be read."""
    return _config(home / "config.yaml")[0]


def _config(path: Path) -> tuple[Mapping[str, Any], str]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, f"{path}: not there"
    except OSError as error:
        return {}, f"{path}: cannot be read: {error.strerror}"
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError):
        return {}, f"{path}: not valid YAML"
    return (content, "") if isinstance(content, dict) else ({}, f"{path}: empty")


def _block(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return base_url, default, api_key, key_env and context_length in one mapping, or the reason."""
    model = config.get("model")
    if not isinstance(model, dict):
        return {}, "no model block with an endpoint"
    provider = str(model.get("provider") or "").strip().lower()
    named = _named(config, provider)
    merged = {**named, **{key: value for key, value in model.items() if value not in (None, "")}}
    if provider in _KNOWN and not merged.get("base_url"):
        merged["base_url"], merged["key_env"] = _KNOWN[provider]
    elif provider not in ("", "auto", "custom", *_KNOWN) and not named:
        return {}, f"provider {provider!r} is Hermes' own login: it is not copied"
    mode = str(merged.get("api_mode") or "chat_completions")
    if mode not in ("auto", "chat_completions"):
        return {}, f"api_mode {mode!r} is not the chat-completions protocol"
    if not isinstance(merged.get("base_url"), str) or not merged["base_url"].strip():
        return {}, "the model block has no base_url"
    return merged, ""


def _named(config: Mapping[str, Any], provider: str) -> dict[str, Any]:
    """Return a provider that the user defined, with its fields called as in the model block."""
    wanted = provider.removeprefix("custom:")
    entries: list[tuple[str, Any]] = []
    if isinstance(customs := config.get("custom_providers"), list):
        entries += [(str(e.get("name", "")), e) for e in customs if isinstance(e, dict)]
    if isinstance(providers := config.get("providers"), dict):
        entries += [(str(name), e) for name, e in providers.items() if isinstance(e, dict)]
    for name, entry in entries:
        if wanted and name.strip().lower() == wanted:
            return {
                "base_url": entry.get("base_url") or entry.get("url") or entry.get("api"),
                "default": entry.get("default_model") or entry.get("model"),
                "key_env": entry.get("key_env") or entry.get("api_key_env"),
                "api_key": entry.get("api_key"),
                "api_mode": entry.get("api_mode"),
                "context_length": entry.get("context_length"),
            }
    return {}


def _endpoint(block: Mapping[str, Any], source: str) -> Endpoint:
    context = block.get("context_length")
    return Endpoint(
        str(block["base_url"]).strip(),
        str(block.get("default") or block.get("model") or block.get("name") or "").strip(),
        context if isinstance(context, int) and not isinstance(context, bool) and context > 0 else 0,
        key_env=_key_name(block),
        source=source,
    )


def _key_name(block: Mapping[str, Any]) -> str:
    """Return the reference to the key: a variable's name, or where the literal stands."""
    literal = str(block.get("api_key") or "").strip()
    if variable := re.fullmatch(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", literal):
        return FROM_HERMES + variable[1]
    if literal and literal != "no-key-required":
        return FROM_HERMES + _LITERAL
    name = str(block.get("key_env") or "").strip()
    return FROM_HERMES + name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else ""


def read_dotenv(path: Path) -> dict[str, str]:
    """Return the variables of a `.env` file: `[export ]NAME=value`, quotes taken off."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = {}
    for line in lines:
        if match := re.fullmatch(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*", line):
            value = match[2]
            quoted = re.match(r"""(["'])(.*?)\1""", value)
            found[match[1]] = quoted[2] if quoted else re.sub(r"\s+#.*$", "", value)
    return found
