"""Where the files of a fleet lie; the only module that knows the layout.

`$XDG_STATE_HOME/hermux/<fleet>/`, or `~/.local/state/hermux/<fleet>/`. Every directory is made with
mode 0700: prompts, answers and screens of workers are nobody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import NotReady

# fmt: off
RESERVED = frozenset((
    "a", "all", "answer", "approve", "ask", "attach", "batch", "bench", "board", "deny", "diff",
    "digest", "doctor", "down", "drain", "endpoint", "events", "fleet", "flow", "gc", "health", "help",
    "hermux", "inbox", "interrupt", "keys", "logs", "ls", "mcp", "merge", "metrics", "mock-endpoint",
    "pair", "path", "pause", "peek", "plugin", "ps", "restart", "rm", "role", "run", "scale",
    "schedule", "selftest", "send", "service", "show", "spawn", "start", "status", "stop", "supervise",
    "supervisor", "top", "transcript", "unsend", "up", "version", "wait", "why", "worktree",
))
# fmt: on
"""Words that a command line reads as something else; no worker or fleet group has such a name."""


@dataclass(frozen=True, slots=True)
class WorkerPaths:
    """The files of one worker, below `<fleet>/workers/<name>/`."""

    dir: Path

    @property
    def name(self) -> str:
        return self.dir.name

    @property
    def spec(self) -> Path:
        return self.dir / "spec.json"

    @property
    def env(self) -> Path:
        """Shell lines with the worker's variables, its key among them; mode 0600."""
        return self.dir / "env"

    @property
    def keys(self) -> Path:
        """Keys that wait for the start at their endpoint; mode 0600."""
        return self.dir / "keys.json"

    @property
    def keys_lock(self) -> Path:
        return self.dir / "keys.lock"

    @property
    def launch(self) -> Path:
        return self.dir / "launch.sh"

    @property
    def events(self) -> Path:
        return self.dir / "events.jsonl"

    @property
    def turns(self) -> Path:
        return self.dir / "turns"

    @property
    def attempts(self) -> Path:
        return self.dir / "attempts"

    def attempt(self, number: int) -> Path:
        """Return the directory of one life of the worker's process."""
        return self.attempts / str(number)

    @property
    def inbox(self) -> Path:
        return self.dir / "inbox"

    @property
    def inbox_new(self) -> Path:
        return self.inbox / "new"

    @property
    def inbox_cur(self) -> Path:
        return self.inbox / "cur"

    @property
    def inbox_done(self) -> Path:
        return self.inbox / "done"

    @property
    def inbox_failed(self) -> Path:
        return self.inbox / "failed"

    def make(self) -> WorkerPaths:
        """Create the worker's directories; those that exist are left as they are."""
        for path in (self.inbox_new, self.inbox_cur, self.inbox_done, self.inbox_failed):
            make_private(path)
        make_private(self.turns)
        make_private(self.attempts)
        return self


@dataclass(frozen=True, slots=True)
class FleetPaths:
    """The files of one fleet; `root` is the fleet's own directory."""

    root: Path
    fleet: str

    @property
    def desired(self) -> Path:
        return self.root / "desired.json"

    @property
    def wake(self) -> Path:
        """A FIFO: a line written to it makes the supervisor look again; see `store/wake.py`."""
        return self.root / "wake"

    @property
    def lock(self) -> Path:
        """Held while `desired.json` is edited."""
        return self.root / "lock"

    @property
    def spawn_lock(self) -> Path:
        """Held while workers are made or removed, which may take minutes."""
        return self.root / "spawn.lock"

    @property
    def up_lock(self) -> Path:
        """Held while `hermux up` changes the fleet."""
        return self.root / "up.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the supervisor for as long as it lives."""
        return self.root / "supervisor.lock"

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def rehearsal(self) -> Path:
        return self.root / "rehearsal.json"

    @property
    def supervisor_log(self) -> Path:
        return self.root / "supervisor.log"

    @property
    def supervisor_log_before(self) -> Path:
        """The log that was moved aside when it had grown too long."""
        return self.root / "supervisor.1.log"

    @property
    def tmux_conf(self) -> Path:
        return self.root / "tmux.conf"

    @property
    def archive(self) -> Path:
        """Where `rm` puts what a worker learned."""
        return self.root / "archive"

    @property
    def workers(self) -> Path:
        return self.root / "workers"

    def worker(self, name: str) -> WorkerPaths:
        return WorkerPaths(self.workers / name)

    def make(self) -> FleetPaths:
        """Create the fleet's directories; those that exist are left as they are."""
        make_private(self.workers)
        return self


def make_private(path: Path) -> Path:
    """Create a directory and its missing parents with mode 0700; raises NotReady naming the path."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        try:
            each.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise NotReady(
                f"cannot make {each}: {error.strerror}",
                hint="set XDG_STATE_HOME to a directory that you can write to",
            ) from error
    return missing[0] if missing else path


def state_root(env: Mapping[str, str]) -> Path:
    """Return the directory of all fleets; relative values of XDG_STATE_HOME are ignored, as its rule says."""
    xdg = env.get("XDG_STATE_HOME", "")
    if xdg.startswith("/"):
        return Path(xdg) / "hermux"
    home = env.get("HOME", "")
    return (Path(home) if home else Path.home()) / ".local" / "state" / "hermux"


def fleet_paths(fleet: str, env: Mapping[str, str]) -> FleetPaths:
    """Return the paths of a fleet; raises BadName for a name that breaks the rule."""
    if fleet != "default":
        from orchestrator.fleet.spec import check_name  # `hermux ls` saves the time of this import

        check_name(fleet, what="fleet")
    return FleetPaths(state_root(env) / fleet, fleet)
