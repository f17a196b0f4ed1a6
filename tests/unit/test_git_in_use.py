"""A removal beside a person's own use of the branch, a torn git directory, and hard links."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from orchestrator.git.recovery import refs
from orchestrator.git.remove import aside_of
from orchestrator.git.worktree import admin_dir
from tests.unit.gitplay import BRANCH, Play, everything


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play.begin(tmp_path.resolve())


def worked(play: Play) -> str:
    play.write(play.tree, {"mine": b"work"})
    play.commit(play.tree, "mine")
    return play.git("rev-parse", "HEAD").strip()


def test_a_branch_that_the_user_has_checked_out_stays(play: Play) -> None:
    tip = worked(play)
    shutil.rmtree(play.tree)
    play.git("worktree", "prune", where=play.repo)
    play.git("checkout", "-q", BRANCH, where=play.repo)
    assert not play.part().branch_deleted
    assert play.git("rev-parse", "HEAD", where=play.repo).strip() == tip
    assert play.git("status", "--porcelain", where=play.repo) == ""


def test_nor_does_a_detached_worktree_take_it_along(play: Play) -> None:
    tip = worked(play)
    play.git("checkout", "-q", "--detach")
    play.git("checkout", "-q", BRANCH, where=play.repo)
    play.part(force=True)
    assert play.git("rev-parse", "HEAD", where=play.repo).strip() == tip
    assert play.git("status", "--porcelain", where=play.repo) == ""


def test_a_commit_that_only_the_users_detached_head_has_counts_as_unmerged(play: Play) -> None:
    tip = worked(play)
    play.git("checkout", "-q", "--detach", tip, where=play.repo)
    done = play.part()
    assert done.kept and "1 unmerged commit" in done.why


def test_a_moved_worktree_is_kept(play: Play, tmp_path: Path) -> None:
    tip = worked(play)
    play.write(play.tree, {"new": b"untracked"})
    moved = tmp_path.resolve() / "moved"
    play.git("worktree", "move", str(play.tree), str(moved), where=play.repo)
    done = play.part(force=True)
    assert done.kept and str(moved) in done.why
    assert play.git("rev-parse", "HEAD", where=moved).strip() == tip


@pytest.mark.parametrize("torn", ["index", "HEAD", "commondir"])
def test_a_removal_goes_on_with_the_ref_that_was_proven(play: Play, tmp_path: Path, torn: str) -> None:
    """Killed while git forgot the worktree: half of its own files are gone, and no new ref is taken of the rest."""
    worked(play)
    play.write(play.tree, {"new": b"untracked", "a.txt": b"staged"})
    play.git("add", "a.txt")
    files = everything(play.tree)

    def tear(step: str) -> None:
        if step == "aside":
            admin = admin_dir(play.ours(), play.tree)
            assert admin is not None
            (admin / torn).unlink()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play.part(force=True, step=tear)
    (ref,) = refs(play.ours())
    done = play.part(force=True)
    assert not done.kept, done.why
    assert done.recovery == ref and refs(play.ours()) == [ref]
    assert not aside_of(play.target()).exists()
    back = play.back(ref, tmp_path / "back")
    assert everything(back.path) == files


def test_hard_links_are_deleted_too(play: Play) -> None:
    play.write(play.tree, {"build/deps/foo-1": b"b"})
    os.link(play.tree / "build/deps/foo-1", play.tree / "build/foo")
    done = play.part(force=True)
    assert not done.kept and done.left == ()
    assert not aside_of(play.target()).exists()
