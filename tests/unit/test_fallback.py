"""The fallback: what is written for Hermes, and what is said once it has switched."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.cli.listing import switched
from orchestrator.fleet.events import Event, EventName
from orchestrator.fleet.role import Approvals, Checkpoints, Role
from orchestrator.fleet.spec import Endpoint, WorkerSpec
from orchestrator.fleet.talk import Talk, fold
from orchestrator.hermes.config import endpoint_config, fallback_variable, role_config

MAIN = Endpoint("http://h:1/v1", "first", 70000, key_env="MAIN_KEY")
SPEC = WorkerSpec("w", "coder", "/", "hx-f-w", MAIN)


def request(model: str) -> Event:
    return Event(EventName.REQUEST, 1.0, 1, 1, session="s", platform="cli", turn="t", data={"model": model})


def test_the_model_asked_last_is_kept_and_dropped_with_the_next() -> None:
    talk = fold(fold(Talk(), request("first")), request("second"))
    assert talk.model == "second"
    assert fold(talk, request("first")).model == "first"


def test_a_switch_is_said() -> None:
    worker = {"endpoint": {"model": "first"}, "fallback": ["second"], "model": "second"}
    assert switched(worker) == "on its fallback second"
    assert switched({**worker, "model": "third"}) == "on the model third"
    assert switched({**worker, "model": "first"}) == switched({**worker, "model": ""}) == ""
    assert switched({**worker, "endpoint": {"model": ""}}) == ""


def test_each_server_gets_its_own_key() -> None:
    same = replace(MAIN, model="second")
    other = Endpoint("http://other:1/v1", "third", 0, key_env="OTHER_KEY")
    open_one = Endpoint("http://open:1/v1", "fourth", 0)
    spec = replace(SPEC, fallback=(same, other, open_one))
    entries = endpoint_config(spec, key=True)["fallback_providers"]
    assert [entry["api_key"] for entry in entries] == [
        "${OPENAI_API_KEY}",
        "${AUXILIARY_HERMUX_FALLBACK2_API_KEY}",
        "no-key-required",
    ]
    assert [fallback_variable(spec, n) for n in range(3)] == ["", "AUXILIARY_HERMUX_FALLBACK2_API_KEY", ""]
    assert [entry["model"] for entry in entries] == ["second", "third", "fourth"]


def test_sampling_follows_the_endpoint() -> None:
    assert endpoint_config(SPEC, key=False)["custom_providers"] == []
    assert "max_tokens" not in endpoint_config(SPEC, key=False)["model"]
    spec = replace(SPEC, temperature=0.0, max_tokens=5)
    made = endpoint_config(spec, key=False)
    assert made["custom_providers"][0]["extra_body"] == {"temperature": 0.0, "max_tokens": 5}
    assert made["custom_providers"][0]["base_url"] == made["model"]["base_url"]
    assert made["model"]["max_tokens"] == 5


def test_what_a_role_lays_over_the_configuration() -> None:
    role = Role(
        "r", "d", "s", approvals=Approvals("smart", 9.7, ("a",), ("b",)), checkpoints=Checkpoints(True, 4)
    )
    made = role_config(role, disabled=("x",))
    assert made == {
        "approvals": {"mode": "smart", "timeout": 9, "deny": ["b"]},
        "command_allowlist": ["a"],
        "checkpoints": {"enabled": True, "max_snapshots": 4},
        "skills": {"disabled": ["x"]},
    }
    assert role_config(role, mcp={})["mcp_servers"] == {}
