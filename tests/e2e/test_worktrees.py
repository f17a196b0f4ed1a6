"""Worktrees with the real git and the real Hermes: nobody's work is in anybody's way, and none is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.play import said, script, shell
from tests.e2e.sandbox import Sandbox, ended, sandbox
from tests.until import until

NAMES = ("w-1", "w-2", "w-3", "w-4")
ALIAS = "Ada Lovelace <ada@example.org>"


@dataclass(frozen=True, slots=True)
class Site:
    """A person's repository, with an identity and uncommitted work."""

    box: Sandbox
    repo: Path

    def git(self, *args: str, where: Path | None = None, check: bool = True) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=where or self.repo,
            env=self.box.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, (args, done.stderr)
        return done.stdout

    def path(self, worker: str) -> Path:
        return Path(self.box.out("worktree", "path", worker))

    def listed(self, worker: str) -> dict[str, Any]:
        found = self.box.json("worktree", "ls")["worktrees"]
        return next(each for each in found if each["worker"] == worker)

    def end(self, *workers: str) -> None:
        self.box.out("stop", *workers, "--now")


def found_site(box: Sandbox, name: str = "some repo") -> Site:
    """Make a repository with one commit and an ignored `.env`."""
    (box.home / ".gitconfig").write_text("[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n")
    site = Site(box, box.home / name)
    site.repo.mkdir()
    site.git("init", "-q", "-b", "trunk")
    (site.repo / "sub").mkdir()
    (site.repo / "story.txt").write_text("once upon a time\n")
    (site.repo / "sub" / "x").write_text("x\n")
    (site.repo / ".gitignore").write_text(".env\n*.log\ncache/\n")
    site.git("add", "-A")
    site.git("commit", "-q", "-m", "first")
    return site


@pytest.fixture
def site(fleet: Sandbox) -> Site:
    return found_site(fleet)


@pytest.fixture(scope="module")
def four(hermes: Path) -> Iterator[Site]:
    """Four workers in worktrees of one repository whose checkout is dirty, spawned from its folder `sub`."""
    with sandbox(hermes) as box:
        site = found_site(box)
        (site.repo / "story.txt").write_text("edited by its owner\n")
        (site.repo / "untracked").write_text("mine\n")
        (site.repo / ".env").write_text("SECRET=1\n")
        (site.repo / "cache").mkdir()
        (site.repo / ".hermux.yaml").write_text(
            "worktree:\n  copy: [.env, no-such-file]\n  link: [cache]\n"
            "  setup: echo $PORT >port.log; git log --format=%an -1 >>port.log\n"
        )
        done = box.run("spawn", "4", "--name", "w", "--role", "coder", "--repo", "some repo/sub", timeout=170)
        assert done.returncode == 0, done.stderr
        (box.home / "told").write_text(done.stderr + done.stdout)
        yield site


def test_each_is_told_where_it_works(four: Site) -> None:
    told = (four.box.home / "told").read_text()
    for name in NAMES:
        line = next(line for line in told.splitlines() if line.startswith(f"{name}  "))
        assert f"{four.path(name)}/sub" in line and f"hermux/{four.box.fleet}/{name}" in line
    assert (
        f"worktrees of {four.repo} begin at {four.git('rev-parse', '--short=8', 'HEAD').strip()} (trunk)"
        in told
    )
    assert "3 uncommitted changes in" in told and "no-such-file: not in" in told
    assert "w-1: cache: brought in, but not ignored by git" in told
    assert "each runs before it is ready: echo $PORT" in told
    listed = four.box.json("ls")["workers"]
    assert [each["branch"] for each in listed] == [f"hermux/{four.box.fleet}/{name}" for name in NAMES]
    assert not four.path("w-1").is_relative_to(four.repo)


@pytest.mark.timeout(400)
def test_four_versions_of_one_file_and_the_checkout_as_it_was(four: Site) -> None:
    """The same file, edited and committed by four agents at once, with the identity of the user."""
    before = four.git("status", "--porcelain"), (four.repo / ".git/config").read_bytes()
    index = (four.repo / ".git/index").read_bytes()
    asked = {}
    for name in NAMES:
        command = f"cd .. && echo version of {name} > story.txt && git commit -qam 'by {name}' && git log -1 --format='%an <%ae>'"
        asked[name] = four.box.begin("ask", name, script(shell(command), said(f"{name} is done"), say="edit"))
    answers = {name: ended(process, 300) for name, process in asked.items()}
    for name in NAMES:
        assert (answers[name].returncode, answers[name].stdout) == (0, f"{name} is done\n"), answers[
            name
        ].stderr
        branch = f"hermux/{four.box.fleet}/{name}"
        assert four.git("show", f"{branch}:story.txt") == f"version of {name}\n"
        assert four.git("log", "-1", "--format=%an <%ae>", branch).strip() == ALIAS
        assert (four.path(name) / "story.txt").read_text() == f"version of {name}\n"
        entry = four.listed(name)
        assert (entry["ahead"], entry["unmerged"], entry["changed"], entry["untracked"]) == (1, 1, 0, 0)
    assert (four.repo / "story.txt").read_text() == "edited by its owner\n"
    assert (four.git("status", "--porcelain"), (four.repo / ".git/config").read_bytes()) == before
    assert (four.repo / ".git/index").read_bytes() == index


def test_files_came_along_and_setup_ran_with_a_port_of_its_own(four: Site) -> None:
    ports = set()
    for name in NAMES:
        tree = four.path(name)
        assert (tree / ".env").read_text() == "SECRET=1\n" and not (tree / ".env").is_symlink()
        assert (tree / "cache").readlink() == four.repo / "cache"
        port, author = (tree / "port.log").read_text().split("\n")[:2]
        assert author == "Ada Lovelace"
        ports.add(port)
        spec = json.loads((four.box.dir / "desired.json").read_text())["workers"][name]["spec"]
        assert str(spec["port"]) == port
    assert len(ports) == 4
    answer = script(shell("echo port=$PORT; pwd"), said("ok"), say="port")
    four.box.out("ask", "w-1", answer)
    texts = json.dumps(four.box.rehearsal("requests?newest=1"))
    assert any(f"port={port}" in texts for port in ports)


def test_worktree_ls_and_diff(four: Site) -> None:
    (four.path("w-2") / "fresh.txt").write_text("not committed\n")
    shown = four.box.out("worktree", "ls")
    assert shown.splitlines()[0].split() == ["WORKER", "BRANCH", "AHEAD", "DIRTY", "UNMERGED", "SIZE", "PATH"]
    assert "1 untracked" in next(line for line in shown.splitlines() if line.startswith("w-2"))
    patch = four.box.out("diff", "w-2")
    assert "+not committed" in patch and "\x1b" not in patch and ".env" not in patch
    assert "fresh.txt" in four.box.out("diff", "w-2", "--stat")
    assert "fresh.txt" in [each["path"] for each in four.box.json("diff", "w-2")["files"]]
    with_terminal = four.box.terminal("diff", "w-2")
    with_terminal.expect("\x1b\\[")
    with_terminal.expect("not committed")
    with_terminal.close()


def test_rm_keeps_unmerged_work_and_force_brings_it_back(four: Site) -> None:
    tree = four.path("w-3")
    (tree / "own.txt").write_text("version of w-3\n")
    four.git("add", "own.txt", where=tree)
    four.git("commit", "-q", "-m", "own", where=tree)
    (tree / "half").write_text("half done\n")
    four.end("w-3")
    (gone,) = four.box.json("rm", "w-3", "--purge")["removed"]
    kept = gone["worktree"]
    assert kept["kept"] and "1 untracked" in kept["why"] and "unmerged commit" in kept["why"]
    assert (tree / "half").exists() and "its worker is gone" in four.box.out("worktree", "ls")
    assert not four.listed("w-3")["owned"]
    done = four.box.run("worktree", "rm", "w-3")
    assert done.returncode == 1 and "--force" in done.stderr and (tree / "half").exists()
    done = four.box.run("worktree", "rm", "w-3", "--force")
    assert done.returncode == 0 and not tree.exists()
    command = next(line for line in done.stderr.splitlines() if "comes back with" in line).partition(": ")[2]
    command = command.partition("with: ")[2]
    ran = subprocess.run(
        command, shell=True, cwd="/", env=four.box.env, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, f"{tree}\n"), ran.stderr
    assert (tree / "half").read_text() == "half done\n"
    assert (tree / "own.txt").read_text() == "version of w-3\n"
    assert four.listed("w-3")["untracked"] == 1


def test_rm_removes_what_is_merged(four: Site) -> None:
    tree, branch = four.path("w-4"), f"hermux/{four.box.fleet}/w-4"
    four.git("stash", "-q")
    four.git("merge", "-q", "--no-edit", branch)
    four.git("stash", "pop", "-q", check=False)
    four.end("w-4")
    done = four.box.run("rm", "w-4")
    assert done.returncode == 0, done.stderr
    assert (
        "its worktree is gone, its branch too" in done.stderr
        and "ignored files that were in it" in done.stderr
    )
    assert not tree.exists() and branch not in four.git("branch", "--list", "hermux/*")
    assert four.git("for-each-ref", f"refs/hermux/recovery/{four.box.fleet}/w-4")


def test_several_spawns_at_once_from_several_processes(site: Site) -> None:
    asked = [site.box.begin("spawn", "2", "--repo", "some repo", "--no-wait", "--json") for _ in range(3)]
    done = [ended(process, 170) for process in asked]
    assert [each.returncode for each in done] == [0, 0, 0], [each.stderr for each in done]
    made = [json.loads(each.stdout)["workers"] for each in done]
    names = [each["name"] for workers in made for each in workers]
    assert len(set(names)) == 6
    assert len({each["cwd"] for workers in made for each in workers}) == 6
    assert len({each["branch"] for workers in made for each in workers}) == 6
    assert len(site.git("worktree", "list", "--porcelain").split("\n\n")) == 8
    specs = [
        each["spec"] for each in json.loads((site.box.dir / "desired.json").read_text())["workers"].values()
    ]
    assert len({spec["port"] for spec in specs}) == 6


def test_a_setup_that_fails_holds_the_worker(site: Site) -> None:
    setup = "for n in 1 2 3; do echo installing $n; done; echo 'no such package' >&2; test -e ../allowed"
    (site.repo / ".hermux.yaml").write_text(f'worktree:\n  setup: "{setup}"\n')
    done = site.box.run("spawn", "--name", "solo", "--repo", "some repo", "--worktree", timeout=120)
    assert done.returncode == 3
    assert (
        "solo is held: the setup command failed (exit 1)" in done.stderr and "no such package" in done.stderr
    )
    assert "installing 3" in site.box.out("peek", "solo")
    entry = site.box.worker("solo")
    assert (entry["attempt"], entry["restarts"], entry["phase"]) == (1, 0, "held")
    assert "no such package" in site.box.out("why", "solo") and "no such package" in site.box.out("ls")
    (site.path("solo").parent / "allowed").touch()
    site.box.out("start", "solo")
    assert site.box.worker("solo")["attempt"] == 2
    site.box.out("restart", "solo")
    assert "installing" not in site.box.out("peek", "solo", "--history")


def test_a_slow_setup_is_shown_and_not_late(site: Site) -> None:
    (site.repo / ".hermux.yaml").write_text(
        "worktree:\n  setup: echo compiling; until [ -e go ]; do sleep 0.1; done\n"
    )
    begun = site.box.begin("spawn", "--name", "slow", "--repo", "some repo", "--worktree")
    until(lambda: site.box.worker("slow").get("setting_up"), 60, what="the setup runs")
    assert "the setup command runs: echo compiling" in site.box.out("ls")
    until(lambda: "compiling" in site.box.out("peek", "slow"), 20)
    (site.path("slow") / "go").touch()
    done = ended(begun, 120)
    assert done.returncode == 0 and "slow is being set up" in done.stderr, done.stderr


def test_a_stop_ends_a_setup(site: Site) -> None:
    (site.repo / ".hermux.yaml").write_text("worktree:\n  setup: sleep 1000\n")
    begun = site.box.begin("spawn", "--name", "long", "--repo", "some repo", "--worktree")
    until(lambda: site.box.worker("long").get("setting_up"), 60)
    site.box.out("stop", "long")
    assert ended(begun, 60).returncode == 3
    assert not site.box.processes("long")


def test_shared_is_said_to_be_a_risk(site: Site) -> None:
    done = site.box.run("spawn", "2", "--repo", "some repo", "--shared", "--no-wait")
    assert "2 workers share" in done.stderr and "overwrite each other's files" in done.stderr
    assert {each["cwd"] for each in site.box.json("ls")["workers"]} == {str(site.repo)}
    done = site.box.run("scale", "3", "--repo", "some repo", "--no-wait")
    assert done.returncode == 0, done.stderr
    assert len([each for each in site.box.json("ls")["workers"] if each["cwd"] != str(site.repo)]) == 1
    assert len(site.box.json("worktree", "ls")["worktrees"]) == 1


def test_bad_input(site: Site) -> None:
    box, home = site.box, site.box.home
    (home / "plain").mkdir()
    site.git("init", "-q", str(home / "empty"))
    site.git("init", "-q", "--bare", str(home / "bare"))
    site.git("branch", f"hermux/{box.fleet}/taken")
    (home / "few").mkdir()
    for program in ("tmux", "sh"):
        (home / "few" / program).symlink_to(str(shutil.which(program)))
    cases: list[tuple[list[str], str, dict[str, str]]] = [
        (["--repo", "plain", "--worktree"], "is in no git repository", {}),
        (["--repo", "plain"], "is in no git repository", {}),
        (["--repo", "empty", "--worktree"], "has no commit yet", {}),
        (["--repo", "bare", "--worktree"], "is a bare repository", {}),
        (["--repo", "some repo", "--worktree", "--shared"], "exclude each other", {}),
        (["--repo", "some repo", "--cwd", "plain"], "exclude each other", {}),
        (["--repo", "some repo", "--worktree", "--name", "taken"], "exists already in", {}),
        (["--repo", "some repo", "--worktree"], "git is not installed", {"PATH": str(home / "few")}),
    ]
    for args, says, env in cases:
        done = box.run("spawn", *args, env=env)
        assert done.returncode == (1 if env else 2), (args, done.stderr)
        assert says in done.stderr and done.stderr.count("\n") <= 2, done.stderr
        assert not box.dir.exists() and not (home / "data" / "hermux").exists(), args
    assert site.git("worktree", "list").count("\n") == 1


def test_a_path_that_exists_and_a_locked_index(site: Site) -> None:
    lock = site.repo / ".git" / "index.lock"
    lock.touch()
    site.box.out("spawn", "--name", "one", "--repo", "some repo", "--worktree", "--no-wait")
    assert lock.exists()
    tree = site.path("one")
    in_the_way = tree.with_name(f"{site.box.fleet}-two")
    in_the_way.mkdir()
    done = site.box.run("spawn", "--name", "two", "--repo", "some repo", "--worktree", "--no-wait")
    assert done.returncode == 2 and f"{in_the_way} exists already" in done.stderr
    assert "hermux/" not in site.git("branch", "--list", "*two")
    assert site.box.json("ls")["workers"][0]["name"] == "one" and len(site.box.json("ls")["workers"]) == 1


def test_a_worktree_removed_by_hand(site: Site) -> None:
    site.box.out("spawn", "--name", "one", "--repo", "some repo", "--worktree")
    tree = site.path("one")
    site.end("one")
    shutil.rmtree(tree)
    assert "its folder is gone" in site.box.out("worktree", "ls")
    done = site.box.run("start", "one")
    assert done.returncode == 3 and f"no such directory: {tree}" in done.stderr
    done = site.box.run("diff", "one")
    assert done.returncode == 2 and "removed by hand" in done.stderr
    site.end("one")
    done = site.box.run("rm", "one")
    assert done.returncode == 0, done.stderr
    assert site.git("worktree", "list").count("\n") == 1
    assert site.box.out("worktree", "ls") == ""
    site.box.out("spawn", "--name", "one", "--repo", "some repo", "--worktree", "--no-wait")


def test_a_spawn_that_fails_leaves_nothing(site: Site) -> None:
    foreign = site.box.home / ".hermes" / "profiles" / f"hx-{site.box.fleet}-w-2"
    foreign.mkdir(parents=True)
    (foreign / "config.yaml").write_text("mine")
    done = site.box.run("spawn", "3", "--name", "w", "--repo", "some repo", "--no-wait")
    assert done.returncode == 2 and f"hx-{site.box.fleet}-w-2" in done.stderr
    assert site.git("worktree", "list").count("\n") == 1
    assert site.git("for-each-ref", "refs/heads/hermux", "refs/hermux") == ""
    assert not list((site.box.home / "data").rglob("*.json")) and site.box.json("ls")["workers"] == []
    assert [path.name for path in foreign.parent.iterdir()] == [foreign.name]


def test_a_spawn_that_is_killed_is_named_and_cleaned(site: Site) -> None:
    """The kill comes while git checks out: a filter of the repository waits for it."""
    (site.repo / ".gitattributes").write_text("slow.txt filter=slow\n")
    (site.repo / "slow.txt").write_text("slow\n")
    site.git("add", "-A")
    site.git("commit", "-q", "-m", "slow")
    site.git("config", "filter.slow.smudge", "sleep 1000")
    begun = site.box.begin("spawn", "--name", "one", "--repo", "some repo", "--worktree")
    places = site.box.home / "data" / "hermux" / "worktrees"
    until(lambda: list(places.glob("*/*-one/.gitignore")), 60, what="the checkout has begun")
    until(lambda: any("1000" in p.cmdline() for p in site.box.processes()), 60, what="its filter runs")
    os.kill(begun.pid, signal.SIGKILL)
    begun.communicate()
    for process in site.box.processes():
        process.kill()
    (left,) = site.box.json("worktree", "ls")["worktrees"]
    assert (left["worker"], left["state"], left["owned"]) == ("one", "making", False)
    assert "left by a spawn that was killed" in site.box.out("worktree", "ls")
    site.git("config", "filter.slow.smudge", "cat")
    site.box.out("spawn", "--name", "one", "--repo", "some repo", "--worktree", "--no-wait")
    (now,) = site.box.json("worktree", "ls")["worktrees"]
    assert (now["state"], now["owned"], now["untracked"]) == ("made", True, 0)


@pytest.mark.parametrize("after", [0.05, 0.3, 0.6])
def test_an_rm_that_is_killed_loses_nothing(site: Site, after: float) -> None:
    site.box.out("spawn", "--name", "one", "--repo", "some repo", "--worktree", "--no-wait")
    tree = site.path("one")
    for number in range(200):
        (tree / f"file {number}").write_bytes(os.urandom(200))
    contents = {path.name: path.read_bytes() for path in tree.glob("file *")}
    site.end("one")
    begun = site.box.begin("worktree", "rm", "one", "--force")
    with_deadline(begun, after)
    done = site.box.run("worktree", "rm", "one", "--force")
    assert done.returncode == 0, done.stderr
    refs = site.git("for-each-ref", "--format=%(refname)", "refs/hermux").split()
    held = {ref: site.git("ls-tree", "-r", "--name-only", f"{ref}:worktree", check=False) for ref in refs}
    whole = next(ref for ref, names in held.items() if names.count("file ") == 200)
    back = Path(
        site.box.out("worktree", "restore", whole, str(site.box.home / "back"), "--repo", "some repo")
    )
    assert {path.name: path.read_bytes() for path in back.glob("file *")} == contents


def with_deadline(process: subprocess.Popen[str], seconds: float) -> None:
    """Let a command run for so long, then kill it hard."""
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
