"""supervisord and circus from PyPI, in an environment that the bench makes and removes, each with N children."""

from __future__ import annotations

import configparser
import subprocess
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from home import Home, until

CHILD = 'echo $$ >"$0.new" && mv "$0.new" "$0" && exec sleep 100000'
"""Writes its pid into a file, at once."""
CHECKS = {"circus": 5.0, "circus, check_delay 0.5": 0.5}
"""Seconds between two looks at the children; 5 is circus' own."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A supervisor that runs, in the foreground, with its children in `files`: each holds a pid."""

    name: str
    pid: int
    files: list[Path]


class Peers:
    """What could be installed; `missing` says why the others were not measured."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._bin = home.path / "peers" / "bin"
        self.missing: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        venv.create(self._bin.parent, with_pip=True)
        for package in ("supervisor", "circus"):
            argv = [str(self._bin / "python"), "-m", "pip", "install", "-q", package]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode:
                self.missing[package] = (done.stderr.strip().splitlines() or ["pip failed"])[-1][:160]
        site = next((self._bin.parent / "lib").glob("python3*/site-packages"))
        self.versions = {d.name.lower(): d.version for d in distributions(path=[str(site)])}

    @property
    def names(self) -> list[str]:
        """Return who can be measured."""
        found = [] if "supervisor" in self.missing else ["supervisord"]
        return found + ([] if "circus" in self.missing else list(CHECKS))

    @property
    def note(self) -> str:
        """Return versions, and who was not measured and why."""
        there = [
            f"{n} {self.versions.get(n, '?')}" for n in ("supervisor", "circus") if n not in self.missing
        ]
        gone = [f"{name}: not measured ({why})" for name, why in self.missing.items()]
        return "; ".join([*there, *gone]) + ", from PyPI, in the same run."

    @contextmanager
    def run(self, name: str, count: int) -> Iterator[Peer]:
        """Run one with `count` children until the end of the block."""
        folder = self._home.path / name.replace(", ", "-").replace(" ", "-")
        folder.mkdir(exist_ok=True)
        files = [folder / f"child{n}" for n in range(count)]
        for file in files:
            file.unlink(missing_ok=True)
        make = self._supervisord if name == "supervisord" else self._circus
        log = (folder / "log").open("w")
        argv = make(folder, files, CHECKS.get(name, 0.0))
        process = subprocess.Popen(
            argv, env=self._home.env, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            until(lambda: all(f.exists() for f in files), timeout=120, every=0.1, what=f"{name}'s children")
            yield Peer(name, process.pid, files)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.close()

    def _supervisord(self, folder: Path, files: list[Path], _: float) -> list[str]:
        script = _script(folder)
        ini = configparser.RawConfigParser()
        ini["supervisord"] = {
            "nodaemon": "true",
            "pidfile": str(folder / "pid"),
            "logfile": str(folder / "main.log"),
        }
        for file in files:
            ini[f"program:{file.name}"] = {
                "command": f"/bin/sh {script} {file}",
                "startsecs": "0",
                "autorestart": "true",
            }
        with (folder / "supervisord.conf").open("w") as out:
            ini.write(out)
        return [str(self._bin / "supervisord"), "-c", str(folder / "supervisord.conf")]

    def _circus(self, folder: Path, files: list[Path], check: float) -> list[str]:
        script = _script(folder)
        ini = configparser.RawConfigParser()
        ini["circus"] = {
            "endpoint": f"ipc://{folder}/a",
            "pubsub_endpoint": f"ipc://{folder}/b",
            "check_delay": f"{check:g}",
        }
        for file in files:
            ini[f"watcher:{file.name}"] = {"cmd": "/bin/sh", "args": f"{script} {file}", "copy_env": "True"}
        with (folder / "circus.ini").open("w") as out:
            ini.write(out)
        return [str(self._bin / "circusd"), str(folder / "circus.ini")]


def _script(folder: Path) -> Path:
    script = folder / "child.sh"
    script.write_text(CHILD.replace("$0", "$1") + "\n")
    return script
