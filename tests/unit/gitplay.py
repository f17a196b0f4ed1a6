"""A real git repository with one worktree of ours in it, and what an agent may leave there."""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from orchestrator.git.remove import Parted, part, quiet_step
from orchestrator.git.repository import Repository, find
from orchestrator.git.restore import Restored, restore
from orchestrator.git.run import Git
from orchestrator.git.status import Status, Target, look
from orchestrator.git.worktree import add

BRANCH = "hermux/f/coder-1"


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which no file of the machine's owner matters."""
    home.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }


@dataclass(frozen=True, slots=True)
class Play:
    """`repo` is the user's checkout, `tree` the worktree."""

    repo: Path
    tree: Path
    env: dict[str, str]

    @classmethod
    def begin(cls, folder: Path, name: str = "re po", *extra: str) -> Play:
        """Make a repository with two commits, an ignored pattern and a worktree."""
        play = cls(folder / name, folder / "trees" / "f-coder-1", environment(folder / "home"))
        play.git("init", "-q", "-b", "trunk", *extra, str(play.repo), where=folder)
        play.write(
            play.repo, {"a.txt": b"one\n", "sub/b.bin": bytes(range(256)), ".gitignore": b"*.log\nbuild/\n"}
        )
        play.commit(play.repo, "first")
        play.write(play.repo, {"a.txt": b"one\ntwo\n"})
        play.commit(play.repo, "second")
        add(play.repository(), play.tree, BRANCH)
        return play

    def repository(self) -> Repository:
        found = find(self.repo, self.env)
        assert found is not None
        return found

    def target(self, **fields: object) -> Target:
        found = self.repository()
        base = self.git("rev-parse", "trunk", where=self.repo).strip()
        facts: dict[str, object] = {"base": base, "branch": BRANCH} | fields
        return Target("f", "coder-1", found.top, found.common, self.tree, env=self.env, **facts)  # type: ignore[arg-type]

    def git(self, *args: str, where: Path | None = None, code: int = 0) -> str:
        """Run git in the worktree, which has to exit with `code`."""
        done = subprocess.run(
            ["git", *args], cwd=where or self.tree, env=self.env, capture_output=True, check=False
        )
        assert done.returncode == code, (args, done.stdout, done.stderr)
        return os.fsdecode(done.stdout)

    def write(self, root: Path, files: dict[str, bytes]) -> None:
        for path, data in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

    def commit(self, where: Path, text: str) -> str:
        self.git("add", "-A", where=where)
        self.git("commit", "-q", "-m", text, where=where)
        return self.git("rev-parse", "HEAD", where=where).strip()

    def status(self) -> Status:
        return look(self.target())

    def part(self, **options: object) -> Parted:
        return part(self.target(), **{"step": quiet_step, **options})  # type: ignore[arg-type]

    def back(self, ref: str, to: Path | None = None) -> Restored:
        return restore(Git(self.repository().common, self.env), ref, to)

    def ours(self) -> Git:
        return Git(self.repository().common, self.env)


def everything(root: Path) -> dict[str, tuple[str, bytes]]:
    """Return kind with permissions, and content, of all below a folder, its own `.git` link left out."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name == ".git":
            continue
        mode = path.lstat().st_mode
        if path.is_symlink():
            found[name] = ("link", os.fsencode(path.readlink()))
        elif path.is_dir():
            found[name] = ("dir", b"")
        elif stat.S_ISREG(mode):
            found[name] = (f"file {stat.S_IMODE(mode):o}", path.read_bytes())
    return found


def git_state(play: Play, tree: Path) -> dict[str, str]:
    """Return what git says of a worktree: status, index, head, branch, and what is under way."""
    asked = {
        "status": ("status", "--porcelain=v2", "-z", "--untracked-files=all"),
        "index": ("ls-files", "-s", "-z"),
        "flags": ("ls-files", "-v", "-z"),
        "head": ("rev-parse", "HEAD"),
        "branch": ("rev-parse", "--abbrev-ref", "HEAD"),
        "cached": ("diff", "--cached", "--binary"),
        "changed": ("diff", "--binary"),
        "reflog": ("reflog", "--format=%H %gs"),
    }
    return {name: play.git(*args, where=tree) for name, args in asked.items()}
