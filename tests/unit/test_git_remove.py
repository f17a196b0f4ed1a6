"""A removal keeps what is not safe elsewhere, and loses nothing wherever it is killed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.git.bring import Item, bring
from orchestrator.git.recovery import refs
from orchestrator.git.remove import aside_of, part
from orchestrator.git.status import look
from orchestrator.git.worktree import add, entries
from tests.unit.gitplay import BRANCH, Play, everything, git_state

STEPS = ("written", "proven", "aside", "forgotten", "branch", "deleted")
KILLED = """
import os, signal, sys
from pathlib import Path
from orchestrator.git.remove import part
from tests.unit.gitplay import Play, environment
folder, last = Path(sys.argv[1]), sys.argv[2]
play = Play(folder / "re po", folder / "trees" / "f-coder-1", environment(folder / "home"))
part(play.target(), force=True, step=lambda name: name == last and os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play.begin(tmp_path.resolve())


def work(play: Play) -> None:
    """Leave a bit of everything."""
    play.write(play.tree, {"mine": b"committed"})
    play.commit(play.tree, "mine")
    play.write(play.tree, {"new": b"untracked", "x.log": b"ignored", "a.txt": b"staged"})
    play.git("add", "a.txt")
    play.write(play.tree, {"a.txt": b"changed"})
    play.write(play.tree / "inner", {"f": b"1"})
    play.git("init", "-q", where=play.tree / "inner")
    play.commit(play.tree / "inner", "inner")


@pytest.mark.parametrize("last", STEPS)
def test_a_kill_loses_nothing(play: Play, tmp_path: Path, last: str) -> None:
    """Killed after each step: what is not on disk comes back from the ref, and the removal can be done again."""
    work(play)
    files, state = everything(play.tree), git_state(play, play.tree)
    script = [sys.executable, "-c", KILLED, str(tmp_path.resolve()), last]
    done = subprocess.run(
        script, cwd=Path(__file__).parents[2], env=play.env | {"PYTHONPATH": "."}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    (ref,) = refs(play.ours())
    if last in ("written", "proven"):
        assert everything(play.tree) == files
    again = play.part(force=True)
    assert not again.kept, again.why
    assert not play.tree.exists() and not aside_of(play.target()).exists()
    assert play.tree not in entries(play.ours())
    play.git("gc", "-q", "--prune=now", where=play.repo)
    for kept in {ref, again.recovery}:
        back = play.back(kept, tmp_path / kept.rpartition("/")[2])
        assert everything(back.path) == files, kept
        assert git_state(play, back.path)["cached"] == state["cached"]
    assert play.git("rev-parse", BRANCH, where=play.repo), "unmerged work keeps its branch"


def test_files_that_appear_while_it_is_removed_stay(play: Play) -> None:
    def meddle(step: str) -> None:
        aside = aside_of(play.target())
        if step == "forgotten":
            (aside / "late").write_bytes(b"written into the folder that was moved aside")
            (aside / "a.txt").write_bytes(b"changed at the last moment")

    done = play.part(step=meddle)
    assert set(done.left) == {"late", "a.txt"}
    assert (Path(done.aside) / "late").exists() and (Path(done.aside) / "a.txt").exists()


def test_clean_and_merged_goes_with_its_branch(play: Play) -> None:
    play.write(play.tree, {"x.log": b"ignored", "new": b"work"})
    play.commit(play.tree, "work")
    play.git("merge", "-q", "--no-ff", "-m", "merged", BRANCH, where=play.repo)
    done = play.part()
    assert not done.kept and done.branch_deleted
    assert done.ignored == ("x.log",)
    assert BRANCH not in play.git("branch", "--list", where=play.repo)
    assert (play.back(done.recovery).path / "x.log").read_bytes() == b"ignored"
    assert play.git("rev-parse", "--abbrev-ref", "HEAD").strip() == BRANCH


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: p.write(p.tree, {"u": b""}), "1 untracked"),
        (lambda p: (p.tree / "a.txt").write_bytes(b"x"), "1 changed"),
        (lambda p: (p.tree / "a.txt").unlink(), "1 changed"),
        (lambda p: p.git("rm", "-q", "--cached", "a.txt"), "1 staged, 1 untracked"),
        (lambda p: (p.write(p.tree, {"n": b""}), p.commit(p.tree, "n")), "1 unmerged commit"),
        (lambda p: p.git("bisect", "start"), "a bisect under way"),
        (lambda p: p.git("init", "-q", "build/dep"), "a repository of its own in build/dep"),
        (lambda p: p.git("worktree", "lock", "--reason", "mine", str(p.tree)), "it is locked: mine"),
        (lambda p: (p.repo / ".git/worktrees/f-coder-1/index.lock").touch(), "index.lock"),
    ],
    ids=["untracked", "changed", "deleted", "staged", "unmerged", "bisect", "nested", "locked", "busy"],
)
def test_it_is_kept_and_says_why(play: Play, make, says: str) -> None:  # type: ignore[no-untyped-def]
    make(play)
    before = everything(play.tree)
    done = play.part()
    assert done.kept and says in done.why
    assert done.recovery in refs(play.ours())
    assert everything(play.tree) == before
    assert play.git("status", "--porcelain") is not None


def test_force_does_not_override_a_lock(play: Play) -> None:
    (play.repo / ".git/worktrees/f-coder-1/index.lock").touch()
    assert play.part(force=True).kept
    (play.repo / ".git/worktrees/f-coder-1/index.lock").unlink()
    assert not play.part(force=True).kept


def test_a_worktree_of_another_repository_inside_keeps_it(play: Play, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Play.begin(tmp_path.resolve() / "other")
    other.git("worktree", "add", "-q", str(play.tree / "inner"), where=other.repo)
    done = play.part(force=True)
    assert done.kept and "inner" in done.why
    assert (play.tree / "inner" / "a.txt").exists()


@pytest.mark.parametrize("broken", ["git-gone", "git-fails", "repo-moved", "object-lost"])
def test_a_git_that_fails_means_keep(play: Play, tmp_path: Path, broken: str) -> None:
    play.write(play.tree, {"x.log": b"ignored"})
    target = play.target()
    before = everything(play.tree)
    programs = tmp_path / "bin"
    programs.mkdir()
    if broken == "git-fails":
        real = shutil.which("git")
        text = f'#!/bin/sh\nfor word; do [ "$word" = update-ref ] && exit 128; done\nexec {real} "$@"\n'
        (programs / "git").write_text(text)
        (programs / "git").chmod(0o755)
    if broken in ("git-gone", "git-fails"):
        target.env["PATH"] = str(programs)  # type: ignore[index]
    if broken == "repo-moved":
        play.repo.rename(tmp_path / "elsewhere")
    if broken == "object-lost":
        play.write(play.tree, {"new": b"only in the index"})
        play.git("add", "new")
        play.write(play.tree, {"new": b"on disk"})
        before = everything(play.tree)
        ident = play.git("rev-parse", ":new").strip()
        (play.repo / ".git/objects" / ident[:2] / ident[2:]).unlink()
    done = part(target, force=True)
    assert done.kept, broken
    assert everything(play.tree) == before


def test_removed_by_hand(play: Play) -> None:
    other = play.tree.with_name("other")
    play.git("worktree", "add", "-q", "--detach", str(other), where=play.repo)
    shutil.rmtree(other)
    play.write(play.tree, {"alone": b"1"})
    play.git("checkout", "-q", "--detach")
    commit = play.commit(play.tree, "on no branch")
    shutil.rmtree(play.tree)
    done = play.part()
    assert not done.kept and done.branch_deleted
    assert play.tree not in entries(play.ours())
    assert other in entries(play.ours()), "no other entry is pruned"
    play.git("gc", "-q", "--prune=now", where=play.repo)
    assert play.git("cat-file", "-t", commit, where=play.repo).strip() == "commit"
    assert play.part().before


def test_what_was_brought_in_is_neither_work_nor_lost(play: Play) -> None:
    play.write(
        play.repo, {".env": b"KEY=secret\n", "cache/big": b"c", "conf/a.local": b"1", "conf/b.local": b"2"}
    )
    done = bring(play.repo, play.tree, copy=[".env", "conf/*.local", "nope", "a.txt"], link=["cache"])
    assert (done.missing, done.there) == (["nope"], ["a.txt"])
    items = tuple(done.items)
    assert {item.path for item in items} == {".env", "conf/a.local", "conf/b.local", "cache"}
    assert (play.tree / "cache").is_symlink()
    target = play.target(brought=items)
    assert not look(target).unsaved()
    (play.tree / "conf/a.local").write_bytes(b"changed by the agent")
    assert look(target).unsaved() == ["1 untracked"]
    files = everything(play.tree)
    gone = part(target, force=True)
    assert not gone.kept
    assert (play.repo / "cache" / "big").exists(), "a link is removed, never what it points to"
    held = play.git("ls-tree", "-r", "--name-only", f"{gone.recovery}:worktree", where=play.repo)
    assert ".env" not in held and "a.local" in held, "a secret of the checkout is not copied into the objects"
    assert everything(play.back(gone.recovery).path) == files


def test_bringing_stays_inside(play: Play, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (play.tree / "out").symlink_to(outside)
    play.write(play.repo, {"out/x": b"1"})
    done = bring(play.repo, play.tree, copy=["out/x"], link=[])
    assert done.there == ["out/x"] and not list(outside.iterdir())
    assert Item("x") == Item("x")


def test_an_unused_one_leaves_no_trace(play: Play) -> None:
    done = play.part(unused=True)
    assert not done.kept and done.branch_deleted and not done.recovery
    assert refs(play.ours()) == []
    assert not play.tree.exists() and BRANCH not in play.git("branch", where=play.repo)


def test_an_unused_one_that_was_half_checked_out(play: Play) -> None:
    (play.repo / ".git/worktrees/f-coder-1/index").unlink()
    (play.tree / "sub/b.bin").unlink()
    done = play.part(unused=True)
    assert not done.kept, done.why
    assert not play.tree.exists()


def test_an_unused_one_whose_git_was_killed(play: Play) -> None:
    (play.repo / ".git/worktrees/f-coder-1/index.lock").touch()
    at_work = subprocess.Popen(["sleep", "100"], cwd=play.tree)
    assert play.part(unused=True).kept
    at_work.kill()
    at_work.wait()
    done = play.part(unused=True)
    assert not done.kept, done.why
    assert not play.tree.exists()


def test_read_only_folders_go_too(play: Play) -> None:
    play.write(play.tree, {"build/mod/file": b"x"})
    (play.tree / "build/mod").chmod(0o555)
    (play.tree / "build").chmod(0o555)
    done = play.part()
    assert not done.kept and not aside_of(play.target()).exists()


def test_nothing_of_the_checkout_changes(play: Play) -> None:
    play.write(play.repo, {"a.txt": b"dirty in the checkout", "u": b"untracked"})
    index = (play.repo / ".git/index").read_bytes()
    config = (play.repo / ".git/config").read_bytes()
    (play.repo / ".git/index.lock").touch()
    work(play)
    play.part()
    play.part(force=True)
    assert (play.repo / ".git/index").read_bytes() == index
    assert (play.repo / ".git/config").read_bytes() == config
    assert (play.repo / "a.txt").read_bytes() == b"dirty in the checkout"
    assert not (play.repo / ".git/info/exclude").read_bytes().count(b"hermux")
    assert not list((play.repo / ".git").glob("worktrees/*"))


@pytest.mark.parametrize("kind", ["submodule", "bare"])
def test_repositories_whose_git_directory_is_elsewhere(tmp_path: Path, kind: str) -> None:
    """A checked-out submodule, and a linked worktree of a bare repository, as the user's checkout."""
    here = tmp_path.resolve()
    first = Play.begin(here)
    first.env["GIT_ALLOW_PROTOCOL"] = "file"
    checkout = here / "outer" / "mod"
    if kind == "submodule":
        first.git("init", "-q", str(here / "outer"), where=here)
        first.git("submodule", "--quiet", "add", str(first.repo), "mod", where=here / "outer")
    else:
        first.git("clone", "-q", "--bare", str(first.repo), str(here / "bare"), where=here)
        first.git("worktree", "add", "-q", str(checkout), "trunk", where=here / "bare")
    play = Play(checkout, here / "trees2" / "f-coder-1", first.env)
    add(play.repository(), play.tree, BRANCH.replace("coder-1", "other"))
    target = play.target(branch=BRANCH.replace("coder-1", "other"))
    play.write(play.tree, {"new": b"untracked", "x.log": b"ignored"})
    files, state = everything(play.tree), git_state(play, play.tree)
    assert look(target).unsaved() == ["1 untracked"]
    done = part(target, force=True)
    assert not done.kept and done.branch_deleted, done.why
    back = play.back(done.recovery)
    assert (everything(back.path), git_state(play, back.path)) == (files, state)


def test_a_change_between_the_ref_and_the_comparison_keeps_it(play: Play) -> None:
    def meddle(step: str) -> None:
        if step == "written":
            (play.tree / "a.txt").write_bytes(b"written meanwhile")

    done = play.part(step=meddle)
    assert done.kept and "changed meanwhile: a.txt" in done.why
    assert (play.tree / "a.txt").read_bytes() == b"written meanwhile"
    assert not aside_of(play.target()).exists()
