"""The `config.yaml` of a worker: every key here was run on Hermes 0.19.0 and 0.22.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.fleet.role import Role
from orchestrator.fleet.spec import Endpoint, WorkerSpec

PLUGIN = "hermux"
NO_KEY = "no-key-required"
"""What Hermes itself sends where no key is configured."""
KEY_REFERENCE = "${OPENAI_API_KEY}"
"""Hermes fills this in when it reads the file, and strips that variable from its tools' environment."""

SECRET = "AUXILIARY_HERMUX_{name}_API_KEY"
"""Names of variables for further secrets. Hermes strips AUXILIARY_*_API_KEY from its tools' environment
whatever stands between (0.19.0 and 0.22.2), and makes nothing of ours of it."""

TIPS = ("busy_input_prompt", "tool_progress_prompt", "openclaw_residue_cleanup", "profile_build_offered")
"""Hints that Hermes shows once, then rewrites config.yaml to say so: all marked as seen."""


def worker_config(spec: WorkerSpec, *, key: bool, approvals_timeout: float) -> dict[str, Any]:
    """Return the whole configuration of a worker; `key` says whether its endpoint wants one."""
    timeout = int(approvals_timeout)
    return {
        **endpoint_config(spec, key=key),
        "display": {
            "bell_on_complete": True,
            "busy_input_mode": "queue",
            "interface": "cli",
            "resume_display": "minimal",
        },
        "approvals": {"mode": "manual", "timeout": timeout, "destructive_slash_confirm": True},
        "clarify": {"timeout": timeout},
        "agent": _agent(spec),
        "security": {"tirith_enabled": False, "allow_lazy_installs": False},
        "memory": {"nudge_interval": 0},
        "skills": {"creation_nudge_interval": 0},
        "model_catalog": {"enabled": False},
        "auxiliary": {"title_generation": {"enabled": False}},
        "telemetry": {"shared_metrics": {"enabled": False, "send": False, "offer_version": 2}},
        "session": {"terminal_continue": False},
        "onboarding": {"seen": dict.fromkeys(TIPS, True)},
        "hooks": {},
        "hooks_auto_accept": False,
        "plugins": {"enabled": [PLUGIN]},
    }


def role_config(
    role: Role, *, disabled: Sequence[str] = (), mcp: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what a role lays over a worker's configuration.

    `disabled`: the skills that are there and not to be seen. `mcp`: the servers that are inherited, with
    references in place of secrets.
    """
    asks, points = role.approvals, role.checkpoints
    made: dict[str, Any] = {
        "approvals": {"mode": asks.mode, "timeout": int(asks.timeout), "deny": list(asks.deny)},
        "command_allowlist": list(asks.allow),
        "checkpoints": {"enabled": points.enabled, "max_snapshots": points.max_snapshots},
        "skills": {"disabled": list(disabled)},
    }
    return {**made, "mcp_servers": dict(mcp)} if mcp is not None else made


def fallback_variable(spec: WorkerSpec, number: int) -> str:
    """Return the variable that holds the key of a worker's fallback (0, 1 …), "" if it needs none."""
    endpoint = spec.fallback[number]
    if not endpoint.key_env or same_key(endpoint, spec.endpoint):
        return ""
    return SECRET.format(name=f"FALLBACK{number + 1}")


def same_key(one: Endpoint, other: Endpoint) -> bool:
    """Whether two endpoints take the same key."""
    return one.key_env == other.key_env and one.base_url == other.base_url


def endpoint_config(spec: WorkerSpec, *, key: bool) -> dict[str, Any]:
    """Return what follows from the endpoint: written anew at each start, since the endpoint may have changed."""
    return {
        "model": _model(spec, key=key),
        "fallback_providers": [_fallback(spec, number) for number in range(len(spec.fallback))],
        "custom_providers": _sampling(spec),
    }


def _agent(spec: WorkerSpec) -> dict[str, Any]:
    """No recovery ladder after a failed turn (0.22); `--max-turns` is no flag of the interactive start."""
    own = {"max_turns": spec.max_turns} if spec.max_turns else {}
    return {"auto_recovery_cycles": 0, **own}


def _model(spec: WorkerSpec, *, key: bool) -> dict[str, Any]:
    endpoint = spec.endpoint
    own = {"max_tokens": spec.max_tokens} if spec.max_tokens else {}
    return {
        "provider": "custom",
        "base_url": endpoint.base_url,
        "default": endpoint.model,
        "api_key": KEY_REFERENCE if key else NO_KEY,
        "context_length": endpoint.context_length,
        **own,
    }


def _fallback(spec: WorkerSpec, number: int) -> dict[str, Any]:
    """Return an entry of `fallback_providers`: asked after `agent.api_max_retries` (3) failures."""
    endpoint = spec.fallback[number]
    variable = fallback_variable(spec, number)
    reference = f"${{{variable}}}" if variable else KEY_REFERENCE if endpoint.key_env else NO_KEY
    return {
        "provider": "custom",
        "model": endpoint.model,
        "base_url": endpoint.base_url,
        "api_key": reference,
    }


def _sampling(spec: WorkerSpec) -> list[dict[str, Any]]:
    """What an endpoint's `extra_body` holds goes with each call, also to a fallback.

    Hermes has no setting for the temperature, and 0.22.2 no longer heeds `model.max_tokens`.
    """
    body = {"temperature": spec.temperature} if spec.temperature is not None else {}
    body |= {"max_tokens": spec.max_tokens} if spec.max_tokens else {}
    url, model = spec.endpoint.base_url, spec.endpoint.model
    return [{"name": "hermux", "base_url": url, "extra_body": body, "models": [model]}] if body else []
