"""A Hermes profile that the user had before: what it is, whose login it uses, who runs on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from orchestrator.errors import UsageError
from orchestrator.hermes.own import find_own, running_on
from tests.until import until


def write_profile(home: Path, config: str, auth: dict[str, object] | None = None) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(config)
    if auth is not None:
        (home / "auth.json").write_text(json.dumps(auth))
    return home


CUSTOM = "model: {provider: custom, base_url: 'http://h:1/v1', default: m, context_length: 70000}\n"
NOUS = "model: {provider: nous, default: big}\n"
LOGIN: dict[str, object] = {"providers": {"nous": {"refresh_token": "once"}}}


def test_an_endpoint_of_its_own(tmp_path: Path) -> None:
    write_profile(tmp_path / "profiles" / "mine", CUSTOM)
    found = find_own(tmp_path, "mine")
    assert (found.endpoint.base_url, found.endpoint.model, found.login) == ("http://h:1/v1", "m", "")
    write_profile(tmp_path, CUSTOM)
    assert find_own(tmp_path, "default").home == tmp_path


def test_a_login_of_its_own_is_fine_and_one_that_is_borrowed_is_not(tmp_path: Path) -> None:
    write_profile(tmp_path, NOUS, LOGIN)
    owner = find_own(tmp_path, "default")
    assert (owner.login, owner.endpoint.base_url, owner.endpoint.model) == ("nous", "", "big")
    assert "its own login: nous" in owner.endpoint.source
    mine = write_profile(tmp_path / "profiles" / "mine", NOUS)
    with pytest.raises(UsageError, match="uses the OAuth login nous of the default profile"):
        find_own(tmp_path, "mine")
    write_profile(mine, NOUS, LOGIN)
    assert find_own(tmp_path, "mine").login == "nous"


def test_the_active_login_counts_where_no_provider_is_named(tmp_path: Path) -> None:
    write_profile(tmp_path, "model: {}\n", {**LOGIN, "active_provider": "nous"})
    assert find_own(tmp_path, "default").login == "nous"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mien", "there is no Hermes profile 'mien'"),
        ("../mine", "there is no Hermes profile"),
        ("ours", "was made by hermux for a worker"),
        ("bare", "has no model set up"),
    ],
)
def test_what_is_refused(name: str, said: str, tmp_path: Path) -> None:
    write_profile(tmp_path / "profiles" / "mine", CUSTOM)
    (write_profile(tmp_path / "profiles" / "ours", CUSTOM) / ".hermux").write_text("{}")
    write_profile(tmp_path / "profiles" / "bare", "display: {}\n")
    with pytest.raises(UsageError, match=said) as refused:
        find_own(tmp_path, name)
    assert "ours" not in refused.value.hint.replace("yours", "")


def note(home: Path, pid: int, start: float) -> None:
    (home / "runtime").mkdir(exist_ok=True)
    entry = {"pid": pid, "process_start_time": start}
    (home / "runtime" / "active_sessions.json").write_text(json.dumps({"entries": [entry]}))


def test_a_noted_conversation_counts_while_its_process_lives(tmp_path: Path) -> None:
    start = psutil.Process().create_time()
    note(tmp_path, os.getpid(), start)
    found = running_on(tmp_path)
    assert found is not None and found.pid == os.getpid()
    note(tmp_path, os.getpid(), start - 100)  # its number was given to another process
    assert running_on(tmp_path) is None
    (tmp_path / "runtime" / "active_sessions.json").write_text("[")
    (tmp_path / "gateway.pid").write_text("{}")
    assert running_on(tmp_path) is None


def test_who_holds_the_database_open_runs_on_it(tmp_path: Path) -> None:
    (tmp_path / "state.db").touch()
    assert running_on(tmp_path) is None
    code = (
        f"import sys; f = open({str(tmp_path / 'state.db')!r}); print('open', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin is not None and holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"open\n"
        found = running_on(tmp_path)
        assert found is not None and found.pid == holder.pid
        assert running_on(tmp_path / "profiles" / "another") is None
    finally:
        holder.stdin.close()
        holder.wait(10)
        holder.stdout.close()
    assert until(lambda: running_on(tmp_path) is None)
