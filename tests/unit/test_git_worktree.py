"""Finding repositories, making worktrees, what is in them, and what they changed."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

import pytest

from orchestrator.errors import HermuxError, UsageError
from orchestrator.git.diff import diff, numbers
from orchestrator.git.lfs import pointers
from orchestrator.git.repository import check_usable, find
from orchestrator.git.run import Git, GitFailed, check_version
from orchestrator.git.worktree import add, check_free, entries
from orchestrator.store import worktrees
from orchestrator.store.paths import FleetPaths
from orchestrator.store.ports import FIRST, LAST, free_port, taken_ports
from orchestrator.store.repofile import load_repofile
from tests.unit.gitplay import BRANCH, Play, environment, everything


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play.begin(tmp_path.resolve())


def test_find(play: Play, tmp_path: Path) -> None:
    found = find(play.repo / "sub", play.env)
    assert found is not None
    assert (found.top, found.common, found.below) == (play.repo, play.repo / ".git", "sub")
    assert (found.branch, found.bare, found.changed) == ("trunk", False, 0)
    inside = find(play.tree / "sub", play.env)
    assert inside is not None
    assert (inside.top, inside.common, inside.branch) == (play.tree, play.repo / ".git", BRANCH)
    assert find(tmp_path / "home", play.env) is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (("init", "-q", "here"), "has no commit yet"),
        (("init", "-q", "--bare", "here"), "bare repository"),
        (("version",), "no git repository"),
    ],
)
def test_where_no_worktree_can_be_made(tmp_path: Path, make: tuple[str, ...], says: str) -> None:
    here, env = tmp_path.resolve() / "here", environment(tmp_path / "home")
    here.mkdir()
    subprocess.run(["git", *make], cwd=tmp_path, env=env, check=True, capture_output=True)
    with pytest.raises(UsageError, match=says) as caught:
        check_usable(find(here, env), here)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("", "not installed"),
        ("echo git version 2.11.0", "too old"),
        ("exit 3", "failed"),
        ("echo hm", "says 'hm'"),
    ],
)
def test_git_itself(tmp_path: Path, program: str, says: str) -> None:
    if program:
        (tmp_path / "git").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "git").chmod(0o755)
    with pytest.raises(GitFailed, match=says):
        check_version({"PATH": str(tmp_path)})


def test_a_git_hook_of_the_caller_leads_nowhere_else(play: Play, tmp_path: Path) -> None:
    env = play.env | {
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_INDEX_FILE": "/nowhere",
        "GIT_WORK_TREE": "/",
    }
    found = find(play.repo, env)
    assert found is not None and found.top == play.repo


def test_what_stands_in_the_way(play: Play, tmp_path: Path) -> None:
    found = play.repository()
    with pytest.raises(UsageError, match="exists already in"):
        check_free(found, tmp_path / "new", BRANCH)
    with pytest.raises(UsageError, match="exists already"):
        check_free(found, play.tree, "hermux/f/other")
    play.git("branch", "solo", where=play.repo)
    with pytest.raises(UsageError, match="stands in the way"):
        check_free(found, tmp_path / "new", "solo/f/w")


def test_many_at_once_and_no_hook_of_the_user(play: Play, tmp_path: Path) -> None:
    hook = play.repo / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\nexit 1\n")
    hook.chmod(0o755)
    config = (play.repo / ".git/config").read_bytes()
    found, failed = play.repository(), list[BaseException]()

    def make(number: int) -> None:
        try:
            add(found, tmp_path.resolve() / "many" / str(number), f"hermux/f/w{number}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    assert len(entries(play.ours())) == 10
    assert not (tmp_path / "hooked").exists()
    assert (play.repo / ".git/config").read_bytes() == config


def test_odd_places(tmp_path: Path) -> None:
    play = Play.begin(tmp_path.resolve(), "wéird  näme\nwith line")
    place = worktrees.plan(play.env, play.repo / ".git", top=play.repo, fleet="f", worker="w")
    assert "\n" not in str(place.path) and " " not in place.path.parent.name
    add(play.repository(), place.path, place.branch)
    assert everything(place.path) == everything(play.tree)


def test_a_worktree_of_a_worktree_has_the_same_repository(play: Play) -> None:
    inner = find(play.tree, play.env)
    assert inner is not None
    plans = {
        worktrees.plan(play.env, each.common, top=play.repo, fleet="f", worker="w").path
        for each in (inner, play.repository())
    }
    assert len(plans) == 1


def test_the_diff_has_everything_and_changes_nothing(play: Play) -> None:
    play.write(play.tree, {"a.txt": b"one\n", "done": b"in a commit\n"})
    play.commit(play.tree, "work")
    play.write(play.tree, {"new.txt": b"fresh\n", "done": b"and on\n", "x.log": b"ignored\n", "nest/f": b"1"})
    play.git("init", "-q", where=play.tree / "nest")
    index = (play.repo / ".git/worktrees/f-coder-1/index").read_bytes()
    target = play.target()
    patch = diff(target).decode()
    assert "-two" in patch and "+fresh" in patch and "+and on" in patch
    assert "ignored" not in patch and "\x1b" not in patch
    assert "\x1b" in diff(target, color=True).decode()
    assert "new.txt" in diff(target, stat=True).decode()
    assert {("a.txt", 0, 1), ("done", 1, 0), ("new.txt", 1, 0)} <= set(numbers(target))
    assert (play.repo / ".git/worktrees/f-coder-1/index").read_bytes() == index


def test_lfs_pointers_are_found(play: Play) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    play.write(play.tree, {".gitattributes": b"*.bin filter=lfs\n", "p.bin": pointer, "full.bin": b"x"})
    play.git("add", "-A")
    assert pointers(play.tree, play.env) == ["p.bin"]


def test_stashes_of_this_branch_only(play: Play) -> None:
    (play.tree / "a.txt").write_bytes(b"x")
    play.git("stash", "-q")
    (play.repo / "a.txt").write_bytes(b"y")
    play.git("stash", "-q", where=play.repo)
    assert len(play.status().stashes) == 1


def test_a_question_waits_for_no_person(play: Play) -> None:
    play.git("remote", "add", "origin", "https://127.0.0.1:9/x", where=play.repo)
    with pytest.raises(GitFailed):
        Git(play.repo, play.env).write("fetch", "origin", timeout=20)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("worktree:\n  copy: .env\n", ":2: worktree.copy: must be a list"),
        ("worktree:\n  copy: [../x]\n", ":2: worktree.copy[0]: a path below the repository"),
        ("worktree:\n  link: [/etc/passwd]\n", ":2: worktree.link[0]: a path below the repository"),
        ("worktree:\n  copys: [x]\n", ":2: worktree.copys: unknown field; did you mean 'copy'?"),
        ("worktee: {}\n", ":1: worktee: unknown field; did you mean 'worktree'?"),
        ("copy: [x]\n", ":1: copy: unknown field; did you mean 'worktree.copy'?"),
        ("worktree:\n  setup: 3\n", ":2: worktree.setup: must be text"),
        ("worktree:\n  setup: a\n  setup: b\n", ":3: worktree.setup: is there twice"),
        ("worktree:\n\tcopy: [x]\n", ":2: begins with a tab"),
        ("- a\n", ":1: not a list of fields"),
    ],
)
def test_faults_of_a_repository_file(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / ".hermux.yaml").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_repofile(tmp_path)
    assert f".hermux.yaml{says}" in str(caught.value)


def test_a_repository_file(tmp_path: Path) -> None:
    assert load_repofile(tmp_path).copy == ()
    (tmp_path / ".hermux.yaml").write_text(
        "worktree:\n  copy: [.env]\n  link: [node_modules]\n  setup: make\n"
    )
    found = load_repofile(tmp_path)
    assert (found.copy, found.link, found.setup) == ((".env",), ("node_modules",), "make")
    (tmp_path / ".hermux.yaml").write_text("")
    assert load_repofile(tmp_path).setup == ""


def test_ports(tmp_path: Path) -> None:
    for fleet in ("a", "b"):
        (tmp_path / fleet).mkdir()
        content = {"workers": {"w": {"spec": {"port": FIRST + (fleet == "b")}}, "old": {"spec": {}}}}
        (tmp_path / fleet / "desired.json").write_text(json.dumps(content))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "desired.json").write_text("{")
    paths = FleetPaths(tmp_path / "a", "a")
    assert taken_ports(paths) == {FIRST, FIRST + 1}
    port = free_port(paths, "w", set())
    assert FIRST <= port <= LAST and port == free_port(paths, "w", set()), "the same name gets the same port"
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        assert free_port(paths, "w", set()) != port
    with pytest.raises(HermuxError, match="is free"):
        free_port(paths, "w", range(FIRST, LAST + 1))


def test_records(tmp_path: Path) -> None:
    from orchestrator.fleet.spec import Worktree

    env = {"XDG_DATA_HOME": str(tmp_path)}
    place = worktrees.plan(env, Path("/r/.git"), top=Path("/r"), fleet="f", worker="w")
    tree = Worktree("/r", str(place.path), place.branch, "0" * 40)
    record = worktrees.Record("f", "w", "/r/.git", tree, brought=(worktrees.Brought("x", sha256="1"),))
    worktrees.write_record(record)
    assert worktrees.records(env) == [record]
    bare = worktrees.Record("f", "w", "/r/.git", tree)
    done = worktrees.made(bare)
    assert done.state == "made" and done.brought == record.brought, "what was written meanwhile stays"
    (place.path.parent / "bad.json").write_text("{")
    assert [each.state for each in worktrees.find(env, "f", "w")] == ["made"]
    assert worktrees.records(env, fleet="g") == []
    worktrees.drop_record(record)
    assert not worktrees.records(env)
    assert [path.name for path in place.path.parent.iterdir()] == ["bad.json"]
