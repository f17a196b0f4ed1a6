"""What else on this machine decides over endpoint and key: `.env` files of Hermes, and its OAuth logins.

Read only, and never a value: names of variables, times and Hermes' own words of error.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from orchestrator.doctor.check import Check, fail, ok, warn
from orchestrator.doctor.install import project_env
from orchestrator.errors import HermuxError
from orchestrator.hermes.install import hermes_root

STEERING = (
    "CUSTOM_BASE_URL",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "HERMES_INFERENCE_PROVIDER",
    "HERMES_INFERENCE_MODEL",
)
"""Variables that lead Hermes to another endpoint. Its `.env` counts before the environment (0.19, 0.22)."""
CONFLICTS = (("OPENAI_API_BASE", "OPENAI_BASE_URL"),)


def environment(env: Mapping[str, str]) -> Check:
    """Look for variables that a worker does not get its endpoint from, but something else does."""
    root = hermes_root(env)
    files: dict[Path, tuple[str, ...]] = {root / ".env": STEERING}
    for profile in sorted(root.glob("profiles/hx-*/.env")):
        files[profile] = (*STEERING, "OPENAI_API_KEY")
    own = _project(env)
    if own is not None:
        files[own] = (*STEERING, "OPENAI_API_KEY")
    for path, names in files.items():
        set_there = [name for name in names if name in _names(path)]
        if set_there and path.parent != root:
            return fail(
                "environment",
                f"{path} sets {', '.join(set_there)}, over a worker's own",
                f"take the line out: ${{EDITOR:-vi}} {path}",
            )
        if set_there:
            return warn(
                "environment",
                f"{path} sets {', '.join(set_there)}: a bare `hermes` uses that over the environment, workers do not",
                f"if it is an old one: ${{EDITOR:-vi}} {path}",
            )
    for one, other in CONFLICTS:
        a, b = env.get(one, "").strip(), env.get(other, "").strip()
        if a and b and a != b:
            return warn("environment", f"{one} and {other} differ; hermux takes {one}", f"unset {other}")
    return ok("environment", "nothing else decides over the endpoint (Hermes' .env files, variables)")


def logins(homes: Iterable[Path], *, used: bool) -> Check | None:
    """Return what is known of the OAuth logins in these Hermes homes; None = there is none.

    A login that Hermes gave up, or that has expired, is a failure only when it is `used`.
    """
    names = []
    verdict = fail if used else warn
    for home in homes:
        for provider, state in _logins(_auth(home)):
            names.append(provider)
            if dead := _dead(provider, state):
                return verdict("oauth", f"{dead} ({home / 'auth.json'})", _again(home, provider))
    if not names:
        return None
    told = ", ".join(dict.fromkeys(names))
    return ok("oauth", f"logged in: {told}; workers get no copy of a login, only --hermes-profile uses one")


def login_homes(env: Mapping[str, str]) -> list[Path]:
    """Return the user's own Hermes homes: the root and the profiles that hermux did not make."""
    root = hermes_root(env)
    return [
        root,
        *(path.parent for path in sorted(root.glob("profiles/*/auth.json")) if path.parent.name[:3] != "hx-"),
    ]


_TOLD = re.compile(
    r"refresh[ _]token|invalid_grant|relogin|re-?authenticate|token refresh failed|oauth|hermes (?:auth|model)`?",
    re.IGNORECASE,
)


def oauth_error(text: str) -> str:
    """Return what to do about an error in Hermes' words when it is one of an OAuth login; "" = it is none."""
    if not _TOLD.search(text):
        return ""
    if re.search(r"reused|already consumed", text, re.IGNORECASE):
        return "another program used up the refresh token: log in again and use the login in one place: hermes model"
    return "log in again with the profile that the worker uses: hermes -p PROFILE model"


def _dead(provider: str, state: Mapping[str, Any]) -> str:
    """Return why a login cannot be used, by Hermes' own word (auth.py `last_auth_error`, pool `last_status`)."""
    error = state.get("last_auth_error")
    if isinstance(error, dict) and error.get("relogin_required"):
        code = str(error.get("code") or "refresh_failed")
        said = " ".join(str(error.get("message") or "").split())[:120]
        reused = "reused" in code or "consumed" in said
        what = "its refresh token was used by another program" if reused else "its refresh was refused"
        return f"the OAuth login of {provider} is dead: {what} ({code})" + (f": {said}" if said else "")
    if state.get("last_status") == "dead":
        told = (
            state.get("last_error_message") or state.get("last_error_reason") or state.get("last_error_code")
        )
        return f"the OAuth login of {provider} is dead: {str(told)[:120]}"
    if _expired(state) and not state.get("refresh_token"):
        return f"the OAuth login of {provider} has expired and cannot be refreshed"
    return ""


def _again(home: Path, provider: str) -> str:
    profile = f"-p {home.name} " if home.parent.name == "profiles" else ""
    return f"hermes {profile}auth add {provider}   then: hermes {profile}auth status {provider}"


def _logins(auth: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (provider, state) of each login by OAuth; API keys are none."""
    providers = auth.get("providers")
    for provider, state in providers.items() if isinstance(providers, dict) else ():
        if isinstance(state, dict) and _is_login(state):
            yield str(provider), {**state, **_tokens(state)}
    pool = auth.get("credential_pool")
    for provider, entries in pool.items() if isinstance(pool, dict) else ():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and str(entry.get("auth_type", "")).startswith("oauth"):
                yield str(provider), entry


def _tokens(state: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = state.get("tokens")
    return inner if isinstance(inner, dict) else {}


def _is_login(state: Mapping[str, Any]) -> bool:
    held = {**state, **_tokens(state)}
    return any(held.get(name) for name in ("refresh_token", "access_token", "last_auth_error"))


def _expired(state: Mapping[str, Any]) -> bool:
    when = state.get("expires_at")
    if isinstance(when, int | float):
        return when / (1000 if when > 1e11 else 1) < time.time()
    try:
        return datetime.fromisoformat(str(when).replace("Z", "+00:00")).timestamp() < time.time()
    except ValueError:
        return False


def _auth(root: Path) -> Mapping[str, Any]:
    try:
        content = json.loads((root / "auth.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _names(path: Path) -> set[str]:
    """Return the names that a `.env` file gives a value."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return set(re.findall(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*\S", text, re.MULTILINE))


def _project(env: Mapping[str, str]) -> Path | None:
    try:
        return project_env(env)
    except HermuxError:
        return None
