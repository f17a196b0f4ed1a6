"""The machine's memory as it counts for starting workers: the kernel's estimate, or a cgroup's limit if lower."""

from __future__ import annotations

from pathlib import Path

from orchestrator.fleet.admission import PER_WORKER, Host, headroom

CGROUP = Path("/sys/fs/cgroup")


def read_host(*, keep_free: int = 0, per_worker: int = 0, root: Path = CGROUP) -> Host | None:
    """Return the memory now, None where it cannot be told; no worker is measured.

    `keep_free` and `per_worker` are bytes that a person set, 0 = the rule of `fleet/admission.py`.
    """
    import psutil

    try:
        memory = psutil.virtual_memory()
    except (OSError, RuntimeError):
        return None
    limit, available = int(memory.total), int(memory.available)
    for bound, used in _cgroups(root):
        if bound < limit:
            limit = bound
        available = min(available, max(0, bound - used))
    return Host(
        available,
        limit,
        keep_free or headroom(limit),
        per_worker or PER_WORKER,
    )


def resident(pid: int) -> int:
    """Return the resident bytes of a process, 0 when it cannot be asked."""
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def resident_tree(pid: int) -> int:
    """Return the resident bytes of a process and of all below it; pages that they share count for each."""
    import psutil

    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0
    return sum(resident(each.pid) for each in family)


def _cgroups(root: Path) -> list[tuple[int, int]]:
    """Return (limit, used) in bytes of this process's cgroup and those above it (v2), or of v1's one.

    Page cache that can be dropped (`inactive_file`) does not count as used: docs of cgroup v2, memory.stat.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    ours = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if ours is None:
        place = root / "memory"
        found = _limit(place, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        return [found] if found else []
    folders = [root / ours, *(root / ours).parents] if ours else [root]
    inside = [folder for folder in folders if folder.is_relative_to(root)]
    return [
        found for each in inside if (found := _limit(each, "memory.max", "memory.current", "inactive_file"))
    ]


def _limit(folder: Path, bound: str, used: str, cache: str) -> tuple[int, int] | None:
    try:
        limit, current = (folder / bound).read_text().strip(), int((folder / used).read_text())
        stat = dict(line.split(maxsplit=1) for line in (folder / "memory.stat").read_text().splitlines())
        return (int(limit), max(0, current - int(stat.get(cache, 0)))) if limit.isdigit() else None
    except (OSError, ValueError):
        return None
