"""The file of saved endpoints: names, the default, old and damaged files, and commands at the same time."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.api import inform
from orchestrator.errors import BadName, NotReady, UsageError
from orchestrator.fleet.spec import Endpoint, EndpointKind
from orchestrator.store.endpoints import (
    forget_endpoint,
    load_endpoint,
    load_endpoints,
    load_fallback,
    save_endpoint,
    saved_path,
    use_endpoint,
)

from .served import models, serve

GPU = Endpoint("http://gpu/v1", "big", 90000, key_env="GPU_KEY", source="flags", given=("endpoint", "model"))
OTHER = Endpoint("http://other/v1", "small", 70000)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_what_is_saved_comes_back(env: dict[str, str]) -> None:
    path = save_endpoint(GPU, env, name="gpu", fallback=(replace(GPU, model="next", context_length=80000),))
    found = load_endpoint(env, "gpu")
    assert found == replace(GPU, name="gpu", given=(), source=f"saved as gpu ({path})")
    assert [each.model for each in load_fallback(env, found)] == ["next"]
    assert {each.key_env for each in load_fallback(env, found)} == {"GPU_KEY"}
    assert load_fallback(env, replace(found, model="next")) == ()
    assert load_fallback(env, OTHER) == ()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_default(env: dict[str, str]) -> None:
    """The first that is saved; one saved without a name; one that is chosen; none after it was removed."""
    assert load_endpoint(env) is None
    save_endpoint(GPU, env, name="gpu")
    save_endpoint(OTHER, env, name="other")
    assert load_endpoints(env).default == "gpu"
    save_endpoint(OTHER, env)
    assert load_endpoints(env).default == "default"
    use_endpoint("other", env)
    assert load_endpoints(env).default == "other"
    assert forget_endpoint(env, "gpu") and load_endpoints(env).default == "other"
    assert forget_endpoint(env, "other") and load_endpoint(env) is None
    assert list(load_endpoints(env).endpoints) == ["default"]


def test_a_file_of_the_first_version_is_read(env: dict[str, str]) -> None:
    path = saved_path(env)
    path.parent.mkdir()
    path.write_text(
        json.dumps(
            {
                "schema": 1,
                "kind": "openai",
                "base_url": "http://old/v1",
                "model": "m",
                "context_length": 70000,
                "key_env": "OLD",
            }
        )
    )
    found = load_endpoint(env)
    assert found is not None and (found.base_url, found.key_env, found.name) == (
        "http://old/v1",
        "OLD",
        "default",
    )
    save_endpoint(GPU, env, name="gpu")
    assert load_endpoints(env).default == "default"
    assert json.loads(path.read_text())["schema"] == 2


def test_the_rehearsal_model_can_be_the_default(env: dict[str, str]) -> None:
    save_endpoint(Endpoint("", "", 0, kind=EndpointKind.REHEARSAL), env)
    found = load_endpoint(env)
    assert found is not None and found.kind is EndpointKind.REHEARSAL


@pytest.mark.parametrize(
    "name", ["rehearsal", "localhost", "http://h/v1", "h:8000", "Big", "a b", "x" * 25, "-x"]
)
def test_names_that_cannot_be(env: dict[str, str], name: str) -> None:
    with pytest.raises(BadName):
        save_endpoint(GPU, env, name=name)
    assert not saved_path(env).exists()


@pytest.mark.parametrize("act", [load_endpoint, forget_endpoint, lambda env, name: use_endpoint(name, env)])
def test_an_unknown_name_is_told_with_the_nearest(env: dict[str, str], act: object) -> None:
    save_endpoint(GPU, env, name="gpu-box")
    with pytest.raises(UsageError, match="no endpoint 'gpu-bx' is saved") as refused:
        act(env, "gpu-bx")  # type: ignore[operator]
    assert "did you mean gpu-box?" in refused.value.hint


def test_a_damaged_file_is_put_aside_by_the_next_that_is_saved(env: dict[str, str]) -> None:
    path = save_endpoint(GPU, env, name="gpu")
    path.write_text('{"schema": 2, "default": "gpu", "endpoints": {"gpu": 3}}')
    for act in (
        lambda: load_endpoint(env),
        lambda: use_endpoint("gpu", env),
        lambda: forget_endpoint(env, "x"),
    ):
        with pytest.raises(UsageError, match=str(path)):
            act()
    save_endpoint(OTHER, env)
    assert list(load_endpoints(env).endpoints) == ["default"]
    assert '"gpu": 3' in path.with_name("endpoint.json.damaged").read_text()


def test_a_file_of_a_newer_version_is_never_written_over(env: dict[str, str]) -> None:
    path = save_endpoint(GPU, env, name="gpu")
    path.write_text('{"schema": 3}')
    with pytest.raises(UsageError, match="schema 3, this version reads 1 and 2"):
        save_endpoint(OTHER, env)
    assert path.read_text() == '{"schema": 3}'


def _save(env: dict[str, str], first: int) -> None:
    for number in range(first, first + 5):
        save_endpoint(replace(GPU, model=f"m{number}"), env, name=f"n{number}")


def test_commands_at_the_same_time_lose_nothing(env: dict[str, str]) -> None:
    fork = multiprocessing.get_context("fork")
    beside = [fork.Process(target=_save, args=(env, first)) for first in range(0, 20, 5)]
    for process in beside:
        process.start()
    for process in beside:
        process.join(60)
    assert [process.exitcode for process in beside] == [0, 0, 0, 0]
    saved = load_endpoints(env).endpoints
    assert {name: each.model for name, each in saved.items()} == {f"n{n}": f"m{n}" for n in range(20)}


# ── what `hermux endpoint` makes of it ───────────────────────────────────────────────────────────

TWO = {"/v1/models": models("big", "next", owner="vllm", max_model_len=90000)}


def test_set_asks_and_saves_what_works(env: dict[str, str]) -> None:
    with serve(TWO) as served:
        found = inform.save(served.url, "big", "", env, name="gpu", fallback=["next"])
        assert (found.endpoint.base_url, found.engine, found.default) == (f"{served.url}/v1", "vLLM", True)
        assert [each.model for each in found.fallback] == ["next"]
        assert found.target.endpoint.given == () and found.target.fallback == found.fallback
        with pytest.raises(NotReady, match="no model 'nxt'"):
            inform.save(served.url, "big", "", env, name="other", fallback=["nxt"])
        with pytest.raises(UsageError, match="--fallback big is the model itself"):
            inform.save(served.url, "big", "", env, name="other", fallback=["big"])
        assert list(load_endpoints(env).endpoints) == ["gpu"]
        shown = inform.current(env)
        assert shown.endpoint == load_endpoint(env) and [each.model for each in shown.fallback] == ["next"]


def test_all_are_asked_at_once(env: dict[str, str]) -> None:
    with serve(TWO) as served:
        inform.save(served.url, "big", "", env, name="gpu")
        save_endpoint(OTHER, env, name="keyless")
        save_endpoint(replace(GPU, key_env="NOT_SET"), env, name="locked")
        save_endpoint(replace(OTHER, base_url="http://127.0.0.1:1/v1"), env, name="dead")
        found = {each.name: each for each in inform.listed(env, ask=True)}
    assert (found["gpu"].answers, found["gpu"].said, found["gpu"].default) == (True, "vLLM", True)
    assert found["dead"].answers is False and "nothing listens on 127.0.0.1:1" in found["dead"].said
    assert "the variable NOT_SET holds no key" in found["locked"].said
    assert [each.answers for each in inform.listed(env)] == [None] * 4


def test_the_default_is_chosen_and_removed(env: dict[str, str]) -> None:
    with serve(TWO) as served:
        inform.save(served.url, "big", "", env, name="gpu")
        save_endpoint(replace(OTHER, base_url="http://127.0.0.1:1/v1"), env, name="dead")
        with pytest.raises(NotReady, match="nothing listens"):
            inform.use("dead", env, ask=True)
        assert load_endpoints(env).default == "gpu"
        assert inform.use("dead", {**env, "HERMUX_ENDPOINT": "gpu"}).notes == (
            "HERMUX_ENDPOINT is set here, and comes before the saved default",
        )
        assert inform.remove("dead", env) and not inform.remove("gpu", env)
