"""The `config.yaml` of a worker: every key here was run on Hermes 0.19.0 and 0.22.2."""

from __future__ import annotations

from typing import Any

from orchestrator.fleet.spec import WorkerSpec

PLUGIN = "hermux"
NO_KEY = "no-key-required"
"""What Hermes itself sends where no key is configured."""
KEY_REFERENCE = "${OPENAI_API_KEY}"
"""Hermes fills this in when it reads the file, and strips that variable from its tools' environment."""

TIPS = ("busy_input_prompt", "tool_progress_prompt", "openclaw_residue_cleanup", "profile_build_offered")
"""Hints that Hermes shows once, then rewrites config.yaml to say so: all marked as seen."""


def worker_config(spec: WorkerSpec, *, key: bool, approvals_timeout: float) -> dict[str, Any]:
    """Return the whole configuration of a worker; `key` says whether its endpoint wants one."""
    timeout = int(approvals_timeout)
    return {
        "model": _model(spec, key=key),
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


def _agent(spec: WorkerSpec) -> dict[str, Any]:
    """No recovery ladder after a failed turn (0.22); `--max-turns` is no flag of the interactive start."""
    own = {"max_turns": spec.max_turns} if spec.max_turns else {}
    return {"auto_recovery_cycles": 0, **own}


def _model(spec: WorkerSpec, *, key: bool) -> dict[str, Any]:
    endpoint = spec.endpoint
    return {
        "provider": "custom",
        "base_url": endpoint.base_url,
        "default": endpoint.model,
        "api_key": KEY_REFERENCE if key else NO_KEY,
        "context_length": endpoint.context_length,
    }
