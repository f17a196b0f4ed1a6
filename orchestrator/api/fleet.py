"""A fleet, as scripts and commands see it. Nothing here acts on a terminal: wishes are written, and waited for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.api import ready
from orchestrator.api.picture import Picture, groups_of, read_picture
from orchestrator.api.ready import Say, quiet
from orchestrator.api.select import select, select_one
from orchestrator.api.supervisor import check_version, ensure, running
from orchestrator.api.worker import Worker
from orchestrator.errors import UsageError
from orchestrator.store.paths import FleetPaths, fleet_paths

if TYPE_CHECKING:
    from orchestrator.api.order import Order
    from orchestrator.api.remove import Removed
    from orchestrator.api.spawn import Made
    from orchestrator.api.up import Plan
    from orchestrator.store.inbox import Found
    from orchestrator.terminal.server import Server


class Fleet:
    """The workers of one private tmux server. Opening it starts and makes nothing."""

    def __init__(self, paths: FleetPaths, env: Mapping[str, str]) -> None:
        self.paths = paths
        self.env = env

    @classmethod
    def open(cls, name: str = "default", *, env: Mapping[str, str] | None = None) -> Fleet:
        """Return a fleet by name, existing or not; raises BadName. `env` defaults to this process's."""
        variables = dict(os.environ) if env is None else env
        return cls(fleet_paths(name, variables), variables)

    @property
    def name(self) -> str:
        return self.paths.fleet

    def picture(self) -> Picture:
        """Return what is known of the fleet now; needs no supervisor."""
        return read_picture(self.paths)

    def names(self) -> list[str]:
        """Return the names of all workers, in the order in which they were added."""
        from orchestrator.store.files import read_json

        return list((read_json(self.paths.desired) or {}).get("workers") or {})

    def groups(self) -> dict[str, list[str]]:
        """Return the groups: names and globs of workers by group name."""
        from orchestrator.store.files import read_json

        return groups_of(read_json(self.paths.desired) or {})

    def select(self, patterns: Sequence[str]) -> list[Worker]:
        """Return the workers that names, globs and groups (`@front`) mean; raises UnknownWorker."""
        found = select(patterns, self.names(), fleet=self.name, groups=self.groups())
        return [Worker(self, name) for name in found]

    def worker(self, name: str) -> Worker:
        """Return one worker by name or glob; raises UnknownWorker for none or several."""
        return Worker(self, select_one(name, self.names(), fleet=self.name, groups=self.groups()))

    def workers(self) -> list[Worker]:
        """Return all workers."""
        return [Worker(self, name) for name in self.names()]

    def spawn(self, role: str = "", *, wait: bool = True, say: Say = quiet, **options: Any) -> Worker:
        """Add one worker and return it, ready unless `wait` is False; options are those of `Order`."""
        from orchestrator.api.order import Order

        made = self.spawn_order(Order(count=1, roles=(role,) if role else (), **options), wait=wait, say=say)
        return Worker(self, made.specs[0].name)

    def spawn_order(
        self, order: Order, *, wait: bool = True, say: Say = quiet, ask: Callable[[str], bool] | None = None
    ) -> Made:
        """Add the workers of an order: all, or on an error none.

        `ask` puts a question to a person: whether the plugin may be put into a profile of theirs.

        Raises UsageError, NotReady (tmux, Hermes, endpoint, disk), SupervisorDown; with `wait` also
        WorkerFailed and TimedOut, which undo nothing.
        """
        from orchestrator.api import spawn
        from orchestrator.api.profiles import plugged

        check_version(running(self.paths))
        found = spawn.preflight(self.paths, self.env, order)
        if order.replace and order.name in self.names():
            self.stop([order.name], say=say)
            self.remove([order.name])
        with plugged(found.hermes_root, order, ask) as told:
            made = spawn.make(self.paths, self.env, found)
        for line in (*made.said, *told):
            say("", line)
        if wait:
            self.wait_ready([spec.name for spec in made.specs], say=say)
        return made

    def wait_ready(
        self, names: Sequence[str], *, say: Say = quiet, timeout: float = ready.READY_LIMIT
    ) -> None:
        """Wait until each worker's prompt stands; raises WorkerFailed and TimedOut (`timeout` in seconds)."""
        ready.wait_ready(self.paths, names, say=say, timeout=timeout)

    def scale(
        self, wanted: int | Mapping[str, int], order: Order, *, wait: bool = True, say: Say = quiet
    ) -> list[str]:
        """Make the running fleet, or each named role, exactly as large as `wanted`; return who runs then.

        Stopped workers come back before new ones are made; surplus ones are stopped, not forgotten.
        `order` gives cwd and endpoint of new ones.
        """
        from orchestrator.api.scale import scale

        return scale(self, wanted, order, wait=wait, say=say)

    def up(
        self,
        file: str = "",
        *,
        dry_run: bool = False,
        prune: bool = False,
        wait: bool = True,
        say: Say = quiet,
    ) -> Plan:
        """Make the fleet what a fleet.yaml declares; see `api.up.up`."""
        from orchestrator.api.up import up

        return up(self, file, dry_run=dry_run, prune=prune, wait=wait, say=say)

    def down_names(self, file: str = "") -> list[str]:
        """Return the workers that a fleet.yaml made, or all without one; raises UsageError for none of a file."""
        from orchestrator.api.up import down_names

        return down_names(self, file)

    def start(self, names: Sequence[str], *, wait: bool = True, say: Say = quiet) -> None:
        """Start workers, or lift their hold; one that runs already is left alone."""
        running = [name for name, worker in self.picture().workers.items() if ready.runs(worker)]
        self._wish([name for name in names if name not in running], want="run", again=True)
        self.ensure_supervisor()
        if wait:
            self.wait_ready(names, say=say)

    def restart(self, names: Sequence[str], *, wait: bool = True, say: Say = quiet) -> None:
        """End and start workers again, each in its own conversation; costs nothing of its crash budget."""
        attempts = {name: int(each.get("attempt") or 0) for name, each in self.picture().workers.items()}
        self._wish(names, want="run", again=True, renew=attempts)
        self.ensure_supervisor()
        if wait:
            self.wait_ready(names, say=say)

    def stop(self, names: Sequence[str], *, grace: float = 10.0, wait: bool = True, say: Say = quiet) -> None:
        """End workers; `grace` is the seconds between asking, TERM and KILL (0 = now)."""
        self._end(names, want="stopped", grace=grace, wait=wait, say=say)

    def pause(self, names: Sequence[str], *, grace: float = 10.0, wait: bool = True, say: Say = quiet) -> int:
        """End workers as `stop` does, and keep all of them, the turn that this cuts too: `start` goes on with it.

        Returns the bytes of memory that their processes had, as measured just before.
        """
        from orchestrator.api.freed import resident_of

        freed = resident_of(self.paths, names)
        self._end(names, want="paused", grace=grace, wait=wait, say=say)
        return freed

    def drain(
        self, names: Sequence[str], *, wait: bool = True, timeout: float | None = None, say: Say = quiet
    ) -> None:
        """Have workers finish what they are doing and then stop; no new text is begun meanwhile.

        Raises TimedOut after `timeout` seconds (None = never): they go on, and stop when they are done.
        """
        from orchestrator.api.drain import wait_drained

        self._wish(names, want="stopped", drain=True)
        self.ensure_supervisor()
        if wait:
            wait_drained(self.paths, names, say=say, timeout=timeout, revive=self.ensure_supervisor)

    def _end(self, names: Sequence[str], *, want: str, grace: float, wait: bool, say: Say) -> None:
        if grace < 0 or grace > 3600:
            raise UsageError(f"--grace {grace:g} is not possible", hint="use 0 to 3600 seconds")
        self._wish(names, want=want, grace=grace)
        self.ensure_supervisor()
        if wait:
            ready.wait_stopped(self.paths, names, word=want, say=say, timeout=3 * grace + 30)

    def remove(self, names: Sequence[str], *, purge: bool = False, unplug: bool = False) -> list[Removed]:
        """Forget stopped workers; what they learned is archived unless `purge`. Raises UsageError.

        `unplug`: take our plugin out of a profile of the user's, where hermux put it there.
        """
        from orchestrator.api.remove import remove

        self.ensure_supervisor()
        return remove(self.paths, self.env, names, purge=purge, unplug=unplug)

    def wait(
        self, names: Sequence[str], *, state: str = "", any_one: bool = False, timeout: float | None = None
    ) -> dict[str, dict[str, Any]]:
        """Wait until these workers (or one of them) have nothing left to do, or show the state word `state`.

        Returns the entries of those that do. Raises WorkerFailed (held, stopped, last turn failed),
        PersonNeeded (a dialog waits), TimedOut.
        """
        from orchestrator.api.until import until_idle

        self.ensure_supervisor()
        return until_idle(self, names, state=state, any_one=any_one, timeout=timeout)

    def wait_message(self, message_id: str, *, timeout: float | None = None) -> Found:
        """Wait until a message was delivered; raises WorkerFailed when it was not, TimedOut, UsageError."""
        from orchestrator.api.until import until_delivered

        self.ensure_supervisor()
        return until_delivered(self, message_id, timeout=timeout)

    def message(self, message_id: str) -> tuple[str, dict[str, Any]]:
        """Return where a message lies (new, cur, done, failed; "" = nowhere) and its file's content."""
        from orchestrator.store import inbox

        found = inbox.find(self.paths, message_id)
        return (found.place, found.data) if found else ("", {})

    def unsend(self, message_id: str) -> Found:
        """Take a queued message back; raises UsageError when it no longer waits."""
        from orchestrator.store import inbox

        check_version(running(self.paths))
        return inbox.unsend(self.paths, message_id)

    def ensure_supervisor(self) -> bool:
        """Start a supervisor if none runs; raises SupervisorDown. Returns whether one was started."""
        if not self.paths.desired.exists():
            return False
        return ensure(self.paths, self.env)

    def running(self) -> list[str]:
        """Return the names of the workers that have a screen, in the order of `names`."""
        from orchestrator.api.wall import running

        return running(self.picture())

    def wall(self, pattern: str = "", *, read_only: bool = False) -> None:
        """Show the running workers, tiled, on this terminal until the person leaves; see `api.wall.watch`."""
        from orchestrator.api.wall import watch

        watch(self, pattern, read_only=read_only)

    def server(self) -> Server:
        """Return the fleet's tmux server, for looking and attaching."""
        from pathlib import Path

        from orchestrator.store.state import read_state
        from orchestrator.terminal.server import Server, socket_name

        state = read_state(self.paths)
        socket = ((state.data.get("tmux") or {}) if state else {}).get("socket")
        known = Path(str(socket)) if socket and "/" in str(socket) else None
        return Server(socket_name(self.name), self.paths.tmux_conf, env=self.env, socket=known)

    def _wish(
        self,
        names: Sequence[str],
        *,
        want: str,
        again: bool = False,
        grace: float | None = None,
        renew: Mapping[str, int] | None = None,
        drain: bool = False,
    ) -> None:
        from orchestrator.store.desired import Want, edit_desired

        if not names:
            return
        check_version(running(self.paths))
        with edit_desired(self.paths) as desired:
            for name in names:
                worker = desired.workers.get(name)
                if worker is None:
                    continue
                worker.want = Want(want)
                worker.generation += int(again)
                worker.grace = worker.grace if grace is None else grace
                worker.renew = max(worker.renew, (renew or {}).get(name, 0))
                worker.drain = drain
