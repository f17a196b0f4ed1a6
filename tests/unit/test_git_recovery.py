"""Each kind of unsaved work comes back byte for byte from the recovery ref, after git has collected its garbage."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.git.remove import aside_of
from tests.unit.gitplay import BRANCH, Play, everything, git_state


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play.begin(tmp_path.resolve())


def untracked(play: Play) -> None:
    odd = {"plain": b"x", "wi th\nnew": b"1", "é/ünï": b"2", "-dash": b"3", "empty": b"", "\udcff raw": b"4"}
    play.write(play.tree, odd)
    (play.tree / "é").chmod(0o700)
    (play.tree / "plain").chmod(0o600)
    (play.tree / "run").write_bytes(b"#!/bin/sh\n")
    (play.tree / "run").chmod(0o755)
    (play.tree / "link").symlink_to("nowhere/at all")
    (play.tree / "hollow" / "deep").mkdir(parents=True)


def ignored(play: Play) -> None:
    play.write(
        play.tree, {"x.log": b"log\0", "build/out/app": os.urandom(5000), "build/secret.env": b"K=1\n"}
    )


def changed(play: Play) -> None:
    (play.tree / "a.txt").write_bytes(b"one\r\nTWO\r\n")
    (play.tree / "sub/b.bin").unlink()
    (play.tree / ".gitignore").chmod(0o755)


def staged(play: Play) -> None:
    """The index differs from the commit and the file from both; one is added, one removed, one announced."""
    (play.tree / "a.txt").write_bytes(b"in the index\n")
    play.git("add", "a.txt")
    (play.tree / "a.txt").write_bytes(b"on the disk\n")
    play.write(play.tree, {"new": b"added", "soon": b"announced", "gone": b"only in the index"})
    play.git("add", "new", "gone")
    play.git("add", "-N", "soon")
    (play.tree / "gone").unlink()
    play.git("rm", "-q", "--cached", "sub/b.bin")


def hidden(play: Play) -> None:
    """git calls this clean."""
    play.git("update-index", "--assume-unchanged", "a.txt")
    (play.tree / "a.txt").write_bytes(b"nobody sees this\n")


def detached(play: Play) -> None:
    play.git("checkout", "-q", "--detach")
    play.write(play.tree, {"alone": b"on no branch"})
    play.commit(play.tree, "on no branch")


def thrown_away(play: Play) -> None:
    """A commit that only the reflog still knows."""
    play.write(play.tree, {"lost": b"found again"})
    play.commit(play.tree, "to be reset")
    play.git("reset", "-q", "--hard", "HEAD~1")


def half_a_rebase(play: Play) -> None:
    play.write(play.tree, {"a.txt": b"mine\n"})
    play.commit(play.tree, "mine")
    play.write(play.tree, {"later": b"picked later"})
    play.commit(play.tree, "later")
    play.git("checkout", "-q", "-b", "side", "HEAD~2")
    play.write(play.tree, {"a.txt": b"theirs\n"})
    play.commit(play.tree, "theirs")
    play.git("checkout", "-q", BRANCH)
    play.git("rebase", "side", code=1)


def half_a_merge(play: Play) -> None:
    half_a_rebase(play)
    play.git("rebase", "--abort")
    play.git("merge", "side", code=1)
    play.write(play.tree, {"noted": b"while in conflict"})


def nested(play: Play) -> None:
    """A repository of its own with a commit, a stash, and dirty and ignored files; and one in an ignored folder."""
    for where in ("vendor/lib", "build/dep"):
        inner = play.tree / where
        play.write(inner, {"code.c": b"int x;\n", ".gitignore": b"*.o\n"})
        play.git("init", "-q", "-b", "main", where=inner)
        play.commit(inner, "inner work")
        play.write(inner, {"code.c": b"stashed\n"})
        play.git("stash", "-q", where=inner)
        play.write(inner, {"code.c": b"dirty\n", "new.c": b"untracked\n", "x.o": b"ignored\n"})
        play.git("add", "new.c", where=inner)


def stashed(play: Play) -> None:
    play.write(play.tree, {"a.txt": b"put away\n", "u": b"untracked, put away"})
    play.git("stash", "push", "-q", "-u", "-m", "for later")
    play.write(play.tree, {"b": b"made after it"})


KINDS: list[Callable[[Play], None]] = [
    untracked, ignored, changed, staged, hidden, detached, thrown_away, half_a_rebase, half_a_merge, nested, stashed,
]  # fmt: skip


def collect(play: Play) -> None:
    """Let git throw away whatever nothing names."""
    play.git("reflog", "expire", "--expire=now", "--all", where=play.repo)
    play.git("gc", "-q", "--prune=now", where=play.repo)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_it_comes_back(play: Play, kind: Callable[[Play], None]) -> None:
    kind(play)
    files, state = everything(play.tree), git_state(play, play.tree)
    stashes = play.git("stash", "list", where=play.repo)
    done = play.part(force=True)
    assert not done.kept, done.why
    assert not play.tree.exists() and not aside_of(play.target()).exists()
    if stashes:
        play.git("stash", "clear", where=play.repo)
    collect(play)
    back = play.back(done.recovery)
    assert everything(back.path) == files
    assert git_state(play, back.path) == state
    assert play.git("stash", "list", "--format=%gs", where=play.repo).strip() in stashes
    play.git("fsck", "--strict", "--no-dangling", where=play.repo)


def test_all_at_once_in_another_folder(play: Play, tmp_path: Path) -> None:
    for kind in (untracked, ignored, nested, staged, half_a_merge):
        if kind is not half_a_merge:
            kind(play)
    files = everything(play.tree)
    done = play.part(force=True)
    back = play.back(done.recovery, tmp_path / "else where")
    assert everything(back.path) == files
    assert set(done.ignored) >= {"x.log", "build/out/app", "build/secret.env", "build/dep/code.c"}


def test_a_rebase_goes_on_after_it_came_back(play: Play) -> None:
    half_a_rebase(play)
    done = play.part(force=True)
    collect(play)
    tree = play.back(done.recovery).path
    play.write(tree, {"a.txt": b"both\n"})
    play.git("add", "a.txt", where=tree)
    play.git("-c", "core.editor=true", "rebase", "--continue", where=tree)
    assert (tree / "later").read_bytes() == b"picked later"
    assert play.git("rev-parse", "--abbrev-ref", "HEAD", where=tree).strip() == BRANCH


def test_the_reflog_still_leads_to_a_commit_that_was_thrown_away(play: Play) -> None:
    thrown_away(play)
    lost = play.git("rev-parse", "HEAD@{1}").strip()
    done = play.part()
    assert not done.kept, "nothing is checked out that is not merged"
    collect(play)
    assert play.git("show", f"{lost}:lost", where=play.repo) == "found again"


def test_a_stash_that_was_dropped_is_put_back(play: Play) -> None:
    stashed(play)
    done = play.part(force=True)
    play.git("stash", "clear", where=play.repo)
    collect(play)
    back = play.back(done.recovery)
    assert any("for later" in note for note in back.notes)
    (back.path / "b").unlink()
    play.git("stash", "pop", "-q", where=back.path)
    assert (back.path / "a.txt").read_bytes() == b"put away\n"
    assert (back.path / "u").read_bytes() == b"untracked, put away"


def test_a_checked_out_submodule_comes_back(tmp_path: Path) -> None:
    play = Play.begin(tmp_path.resolve())
    other = tmp_path.resolve() / "other"
    play.git("init", "-q", "-b", "main", str(other), where=tmp_path)
    play.write(other, {"lib": b"1"})
    play.commit(other, "lib")
    play.env["GIT_ALLOW_PROTOCOL"] = "file"
    play.git("submodule", "--quiet", "add", str(other), "mod")
    play.commit(play.tree, "with a submodule")
    play.write(play.tree / "mod", {"lib": b"2"})
    play.commit(play.tree / "mod", "work inside the submodule")
    play.write(play.tree / "mod", {"more": b"dirty"})
    files, state = everything(play.tree), git_state(play, play.tree)
    inner = play.git("log", "--oneline", where=play.tree / "mod")
    assert play.part().kept
    done = play.part(force=True)
    assert not done.kept, done.why
    for to in (None, tmp_path.resolve() / "moved"):
        back = play.back(done.recovery, to)
        found = everything(back.path)
        assert {p: c for p, c in found.items() if p != "mod/.git"} == {
            p: c for p, c in files.items() if p != "mod/.git"
        }
        assert git_state(play, back.path)["status"] == state["status"]
        assert play.git("log", "--oneline", where=back.path / "mod") == inner


def test_filters_do_not_touch_the_bytes(play: Play) -> None:
    play.git("config", "core.autocrlf", "true", where=play.repo)
    play.write(
        play.tree, {"mixed": b"a\nb\r\nc\n", ".gitattributes": b"*.up filter=up\nk ident\n", "k": b"$Id$\n"}
    )
    play.git("config", "filter.up.clean", "tr a-z A-Z", where=play.repo)
    play.git("config", "filter.up.smudge", "tr A-Z a-z", where=play.repo)
    play.write(play.tree, {"x.up": b"MiXeD\n"})
    play.commit(play.tree, "with filters")
    files = everything(play.tree)
    done = play.part(force=True)
    assert everything(play.back(done.recovery).path) == files


def test_sha256(tmp_path: Path) -> None:
    play = Play.begin(tmp_path.resolve(), "repo", "--object-format=sha256")
    for kind in (untracked, ignored, staged):
        kind(play)
    files, state = everything(play.tree), git_state(play, play.tree)
    done = play.part(force=True)
    back = play.back(done.recovery)
    assert (everything(back.path), git_state(play, back.path)) == (files, state)


def test_plain_git_shows_a_file_of_the_ref(play: Play) -> None:
    untracked(play)
    done = play.part()
    assert done.kept and "untracked" in done.why
    assert play.git("show", f"{done.recovery}:worktree/plain", where=play.repo) == "x"


def test_too_much_for_a_ref_stays(play: Play) -> None:
    play.write(play.tree, {"build/large": os.urandom(3000)})
    files = everything(play.tree)
    done = play.part(force=True, limit=2000)
    assert done.kept and "build/large" in done.why
    assert everything(play.tree) == files
    assert done.recovery and play.status().head, "it has a ref all the same, and still works"


def test_a_restore_never_overwrites(play: Play) -> None:
    untracked(play)
    done = play.part()
    with pytest.raises(Exception, match="exists already"):
        play.back(done.recovery)
    subprocess.run(["true"], check=True)
