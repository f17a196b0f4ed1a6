"""A fleet on a changed endpoint: who follows, with whose key, and what is written in which order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from orchestrator.api.roll import Roll, roll, started_from
from orchestrator.fleet.roll import Target, changed, keeps, lost_key, same
from orchestrator.fleet.spec import Endpoint, EndpointKind, WorkerSpec
from orchestrator.store import keys
from orchestrator.store.desired import edit_desired, load_desired, spec_to_dict
from orchestrator.store.env import read_env, write_env
from orchestrator.store.paths import WorkerPaths
from orchestrator.store.redact import keys_of
from tests.unit.stage import Stage
from tests.until import until

OLD = Endpoint("http://one/v1", "m1", 70000, key_env="K1", source="saved as gpu", name="gpu")
NEW = Endpoint("http://two/v1", "m2", 90000, key_env="K2", source="saved as gpu", name="gpu")
NEXT = replace(OLD, model="m2")
"""Another model of the old server."""
TARGET = Target(NEW, "new-key-4711", is_default=True)


def worker(endpoint: Endpoint, **fields: object) -> WorkerSpec:
    return WorkerSpec("w", "coder", "/", "hx-default-w", endpoint, **fields)  # type: ignore[arg-type]


# ── who follows ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("endpoint", "named", "default"),
    [
        (OLD, True, True),
        (replace(OLD, given=("endpoint",)), True, True),
        (replace(OLD, given=("key",)), True, True),
        (replace(OLD, given=("model",)), False, False),
        (replace(OLD, name="other"), False, True),
        (replace(OLD, name="other", given=("endpoint",)), False, False),
        (replace(OLD, name="", given=("endpoint",)), False, False),
        (replace(OLD, name="", source="Hermes profile default"), False, True),
        (Endpoint("http://127.0.0.1:1/v1", "r", 70000, kind=EndpointKind.REHEARSAL), False, True),
    ],
)
def test_who_follows(endpoint: Endpoint, named: bool, default: bool) -> None:
    assert (keeps(worker(endpoint), replace(TARGET, is_default=False)) is None) is named
    assert (keeps(worker(endpoint), TARGET) is None) is default
    mine = keeps(worker(endpoint, user_profile=True), TARGET)
    assert mine is not None and ("is yours" in mine) is (default or "model" in endpoint.given)


def test_a_key_of_its_own_stays_on_its_server() -> None:
    own = worker(replace(OLD, key_env="MINE", given=("key",)))
    near = changed(own, Target(NEXT))
    assert (near.endpoint.model, near.endpoint.key_env, near.endpoint.given) == ("m2", "MINE", ("key",))
    far = changed(own, TARGET)
    assert (far.endpoint.key_env, far.endpoint.given) == ("K2", ())
    assert lost_key(own, near) == lost_key(worker(OLD), changed(worker(OLD), TARGET)) == ""
    assert "its own key $MINE is not sent to another server, $K2 is" in lost_key(own, far)


def test_fallback_models() -> None:
    """The endpoint's change with it; a role's stay, and those of the worker's own server move there."""
    shared = (replace(NEW, model="m3"),)
    target = replace(TARGET, fallback=shared)
    assert changed(worker(OLD, fallback=(replace(OLD, model="m0"),)), target).fallback == shared
    assert changed(worker(OLD, fallback=(replace(OLD, model="m0"),)), TARGET).fallback == ()
    beside = replace(OLD, model="m9", given=("model",))
    apart = Endpoint("http://three/v1", "m8", 70000, given=("endpoint", "model"))
    found = changed(worker(OLD, fallback=(beside, apart)), target).fallback
    assert [(each.base_url, each.model, each.key_env) for each in found] == [
        ("http://two/v1", "m9", "K2"),
        ("http://three/v1", "m8", ""),
    ]


def test_the_same_is_what_the_server_sees() -> None:
    one = worker(OLD)
    assert same(one, worker(replace(OLD, source="x", given=("endpoint",), name="y")))
    for other in (NEXT, replace(OLD, context_length=80000), replace(OLD, key_env="")):
        assert not same(one, worker(other))
    assert not same(one, worker(OLD, fallback=(NEXT,)))


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def files(tmp_path: Path) -> WorkerPaths:
    paths = WorkerPaths(tmp_path / "w").make()
    write_env(paths, {"A": "1", keys.KEY_VARIABLE: "old-key"})
    return paths


def test_a_key_is_taken_up_with_its_endpoint_only(files: WorkerPaths) -> None:
    keys.stage_key(files, NEW, "new-key", now=OLD)
    assert (keys.key_of(files, OLD), keys.key_of(files, NEW)) == ("old-key", "new-key")
    assert keys.take_up_key(files, OLD) == "old-key", "a crash before the spec was changed"
    assert files.keys.stat().st_mode & 0o777 == 0o600
    assert keys.take_up_key(files, NEW) == "new-key"
    assert read_env(files) == {"A": "1", keys.KEY_VARIABLE: "new-key"}
    assert files.env.stat().st_mode & 0o777 == 0o600
    assert not files.keys.exists()
    assert keys.take_up_key(files, NEW) == "new-key"


def test_no_key_and_a_new_value_of_the_same_name(files: WorkerPaths) -> None:
    keys.stage_key(files, OLD, "renewed", now=OLD)
    assert not keys.has_key(files, "renewed")
    assert keys.take_up_key(files, OLD) == "renewed" and keys.has_key(files, "renewed")
    keys.stage_key(files, NEW, "", now=OLD)
    assert keys.take_up_key(files, NEW) == "" and read_env(files) == {"A": "1"}


def test_two_changes_before_a_start(files: WorkerPaths) -> None:
    """Back to the first, or on to a third: each start sends the key of its own endpoint."""
    third = replace(NEW, base_url="http://three/v1")
    keys.stage_key(files, NEW, "new-key", now=OLD)
    keys.stage_key(files, third, "third-key", now=NEW)
    assert keys.key_of(files, NEW) == "new-key", "until the third is wanted, a start is still on the second"
    keys.stage_key(files, OLD, "old-key", now=third)
    assert "new-key" not in files.keys.read_text()
    assert keys.take_up_key(files, OLD) == "old-key"


def test_what_waits_is_redacted(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.worker("w")
        keys.stage_key(stage.paths.worker("w"), NEW, "new-key-4711", now=OLD)
        write_env(stage.paths.worker("w"), {"http_proxy": "http://me:secret-word@p"})
        assert keys_of(stage.paths, ["w"]) == {"new-key-4711", "secret-word", "me:secret-word"}


# ── what is written ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as stage:
        yield stage


def put(stage: Stage, name: str, endpoint: Endpoint, **entry: object) -> None:
    """Add a worker that runs on an endpoint."""
    stage.worker(name, endpoint=asdict(endpoint), **entry)
    with edit_desired(stage.paths) as desired:
        desired.workers[name].spec = replace(desired.workers[name].spec, endpoint=endpoint)
    started(stage, name)


def started(stage: Stage, name: str) -> None:
    """Act the supervisor: start a worker from what is wanted."""
    spec, paths = load_desired(stage.paths).workers[name].spec, stage.paths.worker(name)
    keys.take_up_key(paths, spec.endpoint)
    paths.spec.write_text(json.dumps({"schema": 1, **spec_to_dict(spec)}))


def taken_up(stage: Stage, name: str, endpoint: Endpoint) -> None:
    """Act the supervisor: read what is wanted, as soon as it is another endpoint."""
    until(lambda: load_desired(stage.paths).workers[name].spec.endpoint.base_url == endpoint.base_url)
    stage.worker(name, endpoint=asdict(load_desired(stage.paths).workers[name].spec.endpoint))


def test_a_roll_is_written_and_waited_for(stage: Stage) -> None:
    put(stage, "w", OLD)
    put(stage, "kept", replace(OLD, name="other", given=("endpoint",)))
    told: list[str] = []

    def start() -> None:
        started(stage, "w")
        stage.worker("w", attempt=2)

    stage.play(lambda: taken_up(stage, "w", NEW), start)
    found = roll(stage.fleet, TARGET, say=lambda name, text: told.append(f"{name} {text}"), timeout=10)
    assert (found.rolled, found.pending, list(found.kept)) == (["w"], [], ["kept"])
    wanted = load_desired(stage.paths).workers
    assert (wanted["w"].roll, wanted["kept"].roll) == (1, 0)
    assert (wanted["w"].renew, wanted["w"].generation) == (0, 1)
    assert wanted["w"].spec.endpoint == NEW
    assert read_env(stage.paths.worker("w"))[keys.KEY_VARIABLE] == TARGET.key
    assert any(line.startswith("w is on m2 at http://two/v1 after") for line in told)
    assert any(line.startswith("kept keeps its endpoint: m1 at http://one/v1") for line in told)
    assert TARGET.key not in str(told)

    again = roll(stage.fleet, TARGET, timeout=10)
    assert (again.rolled, again.pending) == (["w"], [])
    renewed = roll(stage.fleet, replace(TARGET, key="renewed-key"), wait=False)
    assert renewed.pending == ["w"], "a new value of its key is a reason to start it anew"


def test_what_was_started_from_an_old_spec_meanwhile_goes_again(stage: Stage) -> None:
    """A crash between the reading of its attempt and the change: attempt 2 is on the old endpoint."""
    put(stage, "w", OLD)

    def crashed() -> None:
        until(lambda: load_desired(stage.paths).workers["w"].spec.endpoint == NEW)
        stage.worker("w", attempt=2)

    stage.play(crashed, lambda: taken_up(stage, "w", NEW))
    assert roll(stage.fleet, TARGET, wait=False).pending == ["w"]
    assert load_desired(stage.paths).workers["w"].roll == 2
    found = started_from(stage.paths.worker("w"))
    assert found is not None and found.endpoint == OLD


def test_a_worker_that_takes_no_messages_is_restarted_at_once(stage: Stage) -> None:
    put(stage, "w", OLD, word="held", why="auth: 401")
    stage.play(lambda: taken_up(stage, "w", NEW))
    assert roll(stage.fleet, TARGET, wait=False).pending == ["w"]
    entry = load_desired(stage.paths).workers["w"]
    assert (entry.renew, entry.roll, entry.generation) == (1, 1, 2)


def test_stopped_and_held_workers_are_told_and_not_waited_for(stage: Stage) -> None:
    put(stage, "asleep", OLD, want="stopped", phase="stopped", word="stopped")
    put(stage, "crashed", OLD, phase="held", word="held", why="it crashed 5 times")
    told: dict[str, str] = {}
    stage.play(lambda: taken_up(stage, "crashed", NEW))
    found = roll(stage.fleet, TARGET, say=lambda name, text: told.update({name: text}), timeout=10)
    assert found.pending == ["asleep", "crashed"]
    assert told["asleep"] == "is stopped: it starts on the new endpoint"
    assert told["crashed"].endswith("on the new endpoint with: hermux start crashed")


def test_an_empty_fleet(stage: Stage) -> None:
    assert roll(stage.fleet, TARGET) == Roll()
    assert not stage.paths.desired.exists()
