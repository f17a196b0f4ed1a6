"""This machine: disk, memory for more workers, locale, terminal, limits, and folders that can be written."""

from __future__ import annotations

import locale
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from orchestrator.doctor.check import Check, fail, ok, timed, warn
from orchestrator.fleet.admission import MB, PER_WORKER, Host
from orchestrator.health.memory import read_host
from orchestrator.hermes.install import hermes_root
from orchestrator.store.paths import state_root
from orchestrator.terminal.environment import attach_env, server_env

LEAST_DISK = 1 << 30
"""Bytes below which a worker may soon not be able to write: conversations and caches take 20 to 200 MB each."""
FILES_A_WORKER = 4
"""Descriptors that the supervisor holds for a worker: pidfd, feed, two segments."""
LEAST_FILES = 256
LEAST_PROCESSES = 512
"""A worker has 7 to 16 threads (0.19, 0.22), which count too."""
NARROWEST = 64


def checks(env: Mapping[str, str], *, size: os.terminal_size | None = None) -> list[Check]:
    """Return every check of the machine. `size` is the terminal's, None where there is none."""
    looks: dict[str, Callable[[], Check]] = {
        "disk": lambda: disk(env),
        "memory": lambda: memory(_host(env)),
        "folders": lambda: folders(env),
        "locale": lambda: language(env),
        "terminal": lambda: terminal(env, size),
        "limits": limits,
    }
    return [timed(name, look) for name, look in looks.items()]


def disk(env: Mapping[str, str], *, least: int = LEAST_DISK) -> Check:
    """Look at the room where state, Hermes profiles and temporary files lie."""
    places = {"state": state_root(env), "profiles": hermes_root(env), "tmp": Path(_tmp(env))}
    free = {name: shutil.disk_usage(_existing(path)).free for name, path in places.items()}
    told = ", ".join(f"{name} {_size(size)}" for name, size in free.items())
    short = next((name for name, size in free.items() if size < least), "")
    if short:
        return fail(
            "disk",
            f"free: {told}; {_size(least)} are needed",
            f"free space there: du -xsh {_existing(places[short])}/* | sort -h | tail",
        )
    return ok("disk", f"free: {told}")


def _host(env: Mapping[str, str]) -> Host | None:
    """Return the memory as the supervisor counts it, by the user's settings."""
    from orchestrator.store.settings import load_settings

    own = load_settings(env).memory
    return read_host(keep_free=own.headroom_mb * MB, per_worker=own.worker_mb * MB)


def memory(host: Host | None, total: int = 0) -> Check:
    """Return how many more workers there is memory for, with the arithmetic."""
    if host is None:
        return warn("memory", "how much there is cannot be told here", "watch it yourself: free -m")
    each = host.per_worker or PER_WORKER
    room = max(0, host.available - host.headroom)
    more = room // each
    sums = f"({_size(host.available)} available - {_size(host.headroom)} kept free) / {_size(each)} each = {more} more"
    machine = total or _machine()
    bound = f"; a cgroup allows {_size(host.limit)} of {_size(machine)}" if host.limit < machine else ""
    if more < 1:
        return fail(
            "memory",
            f"{sums}: a new worker waits as pending{bound}",
            "end what is not needed: hermux stop W, or see: ps aux --sort=-rss | head",
        )
    if more < 3:
        return warn("memory", f"{sums} workers{bound}", "spawn no more than that, or free memory")
    return ok("memory", f"{sums} workers{bound}")


def folders(env: Mapping[str, str]) -> Check:
    """Look whether state and profiles can be written, and are nobody else's to read."""
    home = env.get("HOME", "")
    if not home or not os.access(home, os.W_OK | os.X_OK):
        return fail(
            "folders", f"HOME ({home or 'not set'}) cannot be written", "export HOME=/a/folder/of/yours"
        )
    for path in (state_root(env), hermes_root(env), Path(_tmp(env))):
        near = _existing(path)
        if not os.access(near, os.W_OK | os.X_OK):
            return fail("folders", f"{near} cannot be written", f"sudo chown -R $(id -u) {near}")
    state = state_root(env)
    if state.is_dir() and state.stat().st_mode & 0o077:
        return warn(
            "folders", f"{state} can be read by others: prompts and keys lie there", f"chmod -R go= {state}"
        )
    return ok("folders", f"{state} and {hermes_root(env)} can be written")


def language(env: Mapping[str, str]) -> Check:
    """Look whether the locale is UTF-8, here and as workers get it."""
    named = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    if "utf" in named.lower():
        return ok("locale", f"{named}, {locale.getpreferredencoding(False)}")
    worker = server_env(env)
    return warn(
        "locale",
        f"{named or 'none is set'}: no UTF-8 here; workers get {worker.get('LC_CTYPE', 'UTF-8')}",
        "for this shell: export LANG=C.UTF-8",
    )


def terminal(env: Mapping[str, str], size: os.terminal_size | None) -> Check:
    """Look at TERM and the size; a worker's own pane has neither from here."""
    term = env.get("TERM", "")
    repaired = attach_env(env).get("TERM", "")
    columns = f", {size.columns}x{size.lines}" if size else ", not a terminal"
    if term != repaired:
        return warn(
            "terminal",
            f"TERM={term or '(none)'} is not known here; attach would use {repaired}",
            f"export TERM={repaired}",
        )
    if size and size.columns < NARROWEST:
        return warn(
            "terminal",
            f"TERM={term}{columns}: Hermes' prompt loses its marks below {NARROWEST} columns",
            "make the window wider before: hermux attach W",
        )
    return ok("terminal", f"TERM={term}{columns}")


def limits() -> Check:
    """Look at the number of files and processes that are allowed."""
    files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    pids = _pids_left()
    told = f"{_count(files)} open files, {_count(processes)} processes" + (
        f", {pids} pids left in the cgroup" if pids >= 0 else ""
    )
    if 0 <= files < LEAST_FILES:
        most = (files - 64) // FILES_A_WORKER
        return warn(
            "limits",
            f"{told}: enough for {max(0, most)} workers",
            f"ulimit -n {min(4096, hard) if hard > 0 else 4096}",
        )
    if 0 <= processes < LEAST_PROCESSES:
        return warn("limits", f"{told}: threads count too, a worker has up to 16", "ulimit -u 4096")
    if 0 <= pids < LEAST_PROCESSES:
        return warn("limits", f"{told}: a worker has up to 16 threads", "raise pids.max of the container")
    return ok("limits", told)


def _pids_left(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many pids this cgroup (v2) may still have, -1 where there is no bound."""
    try:
        line = Path("/proc/self/cgroup").read_text().strip().splitlines()[-1]
        folder = root / line.partition("::/")[2]
        most = (folder / "pids.max").read_text().strip()
        return int(most) - int((folder / "pids.current").read_text()) if most.isdigit() else -1
    except (OSError, ValueError, IndexError):
        return -1


def _machine() -> int:
    import psutil

    return int(psutil.virtual_memory().total)


def _tmp(env: Mapping[str, str]) -> str:
    return env.get("TMPDIR") or tempfile.gettempdir()


def _existing(path: Path) -> Path:
    """Return the path, or the nearest folder above it that exists."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path


def _count(number: int) -> str:
    return "unlimited" if number < 0 or number >= 1 << 60 else f"{number:,}"


def _size(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
