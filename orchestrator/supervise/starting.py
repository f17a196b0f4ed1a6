"""Starting a worker's next attempt: its profile and script brought up to date, then its pane."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from orchestrator.errors import TerminalError
from orchestrator.fleet import action as act
from orchestrator.fleet.observation import Launched, LaunchFailed, Observation
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.fleet.worker import Life, Worker
from orchestrator.hermes import database, enabling, feed, home, install, launch, own
from orchestrator.store.desired import spec_to_dict
from orchestrator.store.files import write_text
from orchestrator.store.keys import take_up_key
from orchestrator.store.paths import FleetPaths, WorkerPaths
from orchestrator.supervise.bounds import Bounds
from orchestrator.supervise.sight import Sight
from orchestrator.terminal.control import Control
from orchestrator.terminal.process import Process

log = logging.getLogger("hermux")


class Starter:
    """`terminal()` gives a control client that works."""

    def __init__(
        self,
        paths: FleetPaths,
        sight: Sight,
        terminal: Callable[[], Control],
        *,
        env: Mapping[str, str],
        bounds: Bounds,
    ) -> None:
        self._paths = paths
        self._sight = sight
        self._terminal = terminal
        self._env = env
        self._bounds = bounds

    def launch(self, action: act.Launch, worker: Worker) -> Observation:
        """Start the next attempt, or say what is missing for it."""
        paths, spec = self._paths.worker(worker.name), worker.spec
        hermes, root = self.hermes(spec), self.root(spec)
        self._refresh_plugin(root, spec)
        missing = (
            own.check_own(root, spec) if spec.user_profile else home.check_home(root, spec.hermes_profile)
        )
        if missing:
            return LaunchFailed(worker.name, action.attempt, f"missing: {', '.join(missing)}", hold=True)
        if not Path(spec.cwd).is_dir():
            return LaunchFailed(worker.name, action.attempt, f"no such directory: {spec.cwd}", hold=True)
        home.refresh_model(root, spec, key=bool(take_up_key(paths, spec.endpoint)))
        self._write_script(paths, spec, hermes.path, root)
        feed.rotate(paths.events, feed.LIMIT)
        paths.attempt(action.attempt).mkdir(mode=0o700, parents=True, exist_ok=True)
        argv = [str(paths.launch), str(action.attempt)]
        anew = self._lost(root, spec, action.resume) if action.resume else ""
        if action.resume and not anew:
            argv += ["--resume", action.resume]
        began = time.time()
        pane, pid = self._start(worker, argv)
        self._bounds.launched(spec, root, began=began)
        process = Process.of(pid)
        life = Life(pane, pid, process.start if process else 0.0, time.time())
        return Launched(worker.name, action.attempt, life, anew)

    def _lost(self, root: Path, spec: WorkerSpec, session: str) -> str:
        """Return why the session cannot be resumed, "" if it can; a damaged database of ours is set aside."""
        folder = home.profile_dir(root, spec.hermes_profile)
        why = database.cannot_resume(folder, session)
        if why and not spec.user_profile and home.is_ours(root, spec.hermes_profile):
            database.set_aside(folder, time.strftime("%Y%m%d-%H%M%S"))
        return why

    def _refresh_plugin(self, root: Path, spec: WorkerSpec) -> None:
        """Bring the plugin to this version before anything is missed: a newer one has files that are not there."""
        if spec.user_profile:
            enabling.refresh_put(home.profile_dir(root, spec.hermes_profile))
        elif home.is_ours(root, spec.hermes_profile):
            home.refresh_plugin(root, spec.hermes_profile)

    def hermes(self, spec: WorkerSpec) -> install.HermesInstall:
        """Return the Hermes that the worker was made with, or what is found now if that has gone."""
        own = {"HERMUX_HERMES": spec.hermes} if spec.hermes and Path(spec.hermes).exists() else {}
        return install.find_hermes({**self._env, **own})

    def root(self, spec: WorkerSpec) -> Path:
        """Return the folder whose `profiles/` holds the worker's."""
        return Path(spec.hermes_root) if spec.hermes_root else install.hermes_root(self._env)

    def _write_script(self, paths: WorkerPaths, spec: WorkerSpec, hermes: Path, root: Path) -> None:
        script = launch.render_launch(
            paths.dir, spec, fleet=self._paths.fleet, wake=self._paths.wake, hermes=hermes, hermes_root=root
        )
        if not paths.launch.is_file() or paths.launch.read_text() != script:
            write_text(paths.launch, script, mode=0o700, sync=False)
        started_from = json.dumps({"schema": 1, **spec_to_dict(spec)}, ensure_ascii=False) + "\n"
        if not paths.spec.is_file() or paths.spec.read_text(errors="replace") != started_from:
            write_text(paths.spec, started_from, sync=False)

    def _start(self, worker: Worker, argv: list[str]) -> tuple[str, int]:
        """Run argv in the pane that the worker had, so that whoever watches stays; else in a new one.

        A pane that a person opened in the worker's session is never taken for it, nor one of another
        session: a new tmux server counts its panes from %0 again.
        """
        control, spec = self._terminal(), worker.spec
        row = self._sight.panes.get(worker.pane)
        if row is not None and row.session == worker.name:
            try:
                return worker.pane, control.respawn(worker.pane, argv, cwd=Path(spec.cwd))
            except TerminalError as error:  # a person closed it since the last look
                log.info("%s: %s", worker.name, error)
        exists = any(row.session == worker.name for row in control.panes())
        make = control.new_window if exists else control.new_session
        made = make(worker.name, argv, cwd=Path(spec.cwd), columns=spec.columns, rows=spec.rows)
        return made.pane_id, made.pid
