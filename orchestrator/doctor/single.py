"""One worker's request, repeated without Hermes: is it the worker, the model, the endpoint or the concurrency?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.doctor.check import Check, State, Trouble, fail, ok, warn
from orchestrator.doctor.foreign import STEERING, oauth_error
from orchestrator.doctor.speech import Said
from orchestrator.doctor.target import Target, ask, failures
from orchestrator.errors import NotReady
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.health.engines import Engine
from orchestrator.hermes.home import check_home, profile_dir

NEARLY_FULL = 0.85
"""Share of the context from which a talk is likely to be compacted, or refused."""
_SLOTS = {
    Engine.VLLM: "start vLLM with a larger --max-num-seqs",
    Engine.SGLANG: "start SGLang with a larger --max-running-requests",
    Engine.LLAMA_CPP: "start llama-server with -np {count} and -c {context}",
    Engine.OLLAMA: "start it with OLLAMA_NUM_PARALLEL={count} ollama serve",
    Engine.LM_STUDIO: "allow more parallel requests where LM Studio loads the model",
}


def state_of(name: str, entry: Mapping[str, Any]) -> Check:
    """Return what the fleet's picture says of the worker: held, failed, waiting, or nothing wrong."""
    endpoint = entry.get("endpoint") or {}
    key = f"key in ${endpoint['key_env']}" if endpoint.get("key_env") else "no key"
    what = f"{entry.get('word')}: {endpoint.get('model')} at {endpoint.get('base_url')}, {key}"
    last = entry.get("last_turn") or {}
    if entry.get("word") == "held" or entry.get("phase") == "held":
        why = str(entry.get("why") or "no reason was noted")
        return warn("worker", f"held: {why}", oauth_error(why) or f"when it is mended: hermux start {name}")
    if last.get("outcome") == "failed":
        error = " ".join(str(last.get("error") or "").split())[:160]
        return warn(
            "worker",
            f"its last turn failed ({last.get('kind')}): {error}",
            oauth_error(error) or f"hermux events {name} --tail 10",
        )
    if entry.get("waiting"):
        return warn("worker", f"waits for a person: {_line(entry['waiting'].get('text'))}", "hermux inbox")
    if entry.get("phase") == "pending" and entry.get("why"):
        return warn("worker", f"pending: {_line(entry['why'])}", f"hermux why {name}")
    return ok("worker", what)


def setting_of(spec: WorkerSpec, root: Path, fleet: str) -> Check:
    """Return whether its Hermes profile is whole, its own, and says the same endpoint as the worker's spec."""
    again = f"hermux restart {spec.name}"
    if not Path(spec.cwd).is_dir():
        return fail("settings", f"its folder is gone: {spec.cwd}", f"mkdir -p {spec.cwd} ; {again}")
    if not spec.user_profile and (missing := check_home(root, spec.hermes_profile)):
        return fail("settings", f"missing: {missing[0]}", f"hermux spawn --replace --name {spec.name}")
    home = profile_dir(root, spec.hermes_profile)
    if not spec.user_profile and (owner := _owner(home)) != (fleet, spec.name):
        whose = f"{owner[1]} of fleet {owner[0]}" if owner else "somebody else"
        return fail(
            "settings", f"name conflict: the Hermes profile is that of {whose}", f"hermux rm {spec.name}"
        )
    block = _model_block(home)
    for field, wanted in (("base_url", spec.endpoint.base_url), ("default", spec.endpoint.model)):
        found = str(block.get(field) or "")
        if not spec.user_profile and found != wanted:
            return fail(
                "settings",
                f"its config.yaml says {field} {found!r}, the fleet {wanted!r}: somebody changed it",
                f"{again}   (writes it anew)",
            )
    return ok("settings", f"profile {spec.hermes_profile} is whole and asks {spec.endpoint.model}")


def surroundings(spec: WorkerSpec, environ: Mapping[str, str], key: str, root: Path) -> Check:
    """Return whether the process that runs has the variables that it was to get; values are not shown."""
    again = f"hermux restart {spec.name}"
    if not environ:
        return ok("environment", "it does not run: nothing to look at")
    steering = [name for name in STEERING if environ.get(name)]
    if steering:
        return fail("environment", f"wrong environment: {', '.join(steering)} is set in it", again)
    if key and environ.get("OPENAI_API_KEY") != key:
        return fail("environment", "it runs with another key than its env file holds", again)
    homes = (str(root), str(profile_dir(root, spec.hermes_profile)))
    if environ.get("HERMES_HOME", "") not in homes:
        return fail("environment", f"it runs in another Hermes home: {environ.get('HERMES_HOME')}", again)
    return ok("environment", "it runs with its own Hermes home and key, and no variable that leads elsewhere")


def fullness(spec: WorkerSpec, used: int) -> Check:
    """Return how full the conversation is; `used` is the prompt of its newest request in tokens, 0 = none."""
    most = spec.endpoint.context_length
    if not used or not most:
        return ok("context", "no request yet: nothing in its context")
    seen = f"{used:,} of {most:,} tokens ({used * 100 // most} %)"
    if used > NEARLY_FULL * most:
        return warn("context", f"nearly full: {seen}", f"hermux send {spec.name} /compress --slash")
    return ok("context", seen)


def alone(target: Target) -> Said | Trouble:
    """Make the worker's request once, streamed and with tools, and return what came."""
    try:
        return ask(target, stream=True, tools=True)
    except (Trouble, NotReady) as trouble:
        return trouble if isinstance(trouble, Trouble) else Trouble(str(trouble), hint=trouble.hint)


def other_model(target: Target) -> str:
    """Return another model of the same server that answers where this one does not, "" for none."""
    for model in target.models:
        if model != target.endpoint.model:
            try:
                ask(replace(target, limit=min(target.limit, 20.0)), model=model)
            except (Trouble, NotReady):
                continue
            return model
    return ""


def together(outcomes: Sequence[Said | Trouble], target: Target) -> Check:
    """Return what several requests at once came to."""
    count, bad = len(outcomes), failures(outcomes)
    if not bad:
        return ok("together", f"{count} requests at once are all answered")
    return fail(
        "together",
        f"{len(bad)} of {count} requests at once fail: {bad[0]}",
        f"{slots(target, count)}; or fewer workers: hermux scale {max(1, count - len(bad))}",
    )


def slots(target: Target, count: int) -> str:
    """Return how one has this server answer `count` requests at once."""
    text = _SLOTS.get(target.engine, "raise the server's number of parallel requests, or its limit")
    return text.format(count=count, context=count * target.endpoint.context_length)


def verdict(
    name: str,
    single: Said | Trouble,
    crowd: Check | None,
    facts: Sequence[Check],
    *,
    other: str = "",
    model: str = "",
) -> Check:
    """Say whose fault it is. `facts` are the checks of the worker itself, `other` a model that does answer."""
    if isinstance(single, Trouble):
        if other:
            return fail("verdict", f"it is the model: {other} answers there, {model} does not", single.hint)
        return fail("verdict", "it is the endpoint: the request fails without Hermes too", single.hint)
    if crowd is not None and crowd.failed:
        return fail(
            "verdict", "it is the concurrency: alone the request is answered, together it is not", crowd.next
        )
    wrong = [each for each in facts if each.state in (State.FAIL, State.WARN)]
    if wrong:
        gravest = next((each for each in wrong if each.failed), wrong[0])
        found = fail if gravest.failed else warn
        return found("verdict", f"it is the worker ({gravest.name}): {gravest.seen}", gravest.next)
    return ok("verdict", f"nothing is wrong with the endpoint, the model or {name} itself")


def _owner(home: Path) -> tuple[str, str] | None:
    try:
        mark = json.loads((home / ".hermux").read_bytes())
        return str(mark["fleet"]), str(mark["worker"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _model_block(home: Path) -> Mapping[str, Any]:
    import yaml

    try:
        content = yaml.safe_load((home / "config.yaml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    block = content.get("model") if isinstance(content, dict) else None
    return block if isinstance(block, dict) else {}


def _line(text: object) -> str:
    return " ".join(str(text or "").split())[:160]
