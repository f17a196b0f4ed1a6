"""The inbox of a worker: a message is a file that moves `new` → `cur` → `done` | `failed` by rename.

Anyone may put a file into `new`; only the supervisor moves it on. `cur/<id>.txt` is the bare text, which a
typed reference points to.
"""

from __future__ import annotations

import errno
import json
import secrets
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import HermuxError, UsageError
from orchestrator.fleet.message import Message, MessageKind, digest
from orchestrator.store.files import BadFile, read_json, sync_directory, write_json, write_text
from orchestrator.store.paths import FleetPaths, WorkerPaths

KEEP = 500
"""Finished messages kept, each in `done` and in `failed`."""
KEEP_BYTES = 64 << 20
"""Of the finished messages that are larger than an even share of it (134 kB), each in `done` and `failed`."""
KEEP_TEXTS = 50
"""Texts kept in `cur` after delivery: a worker that was told to read the file does so later."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_last = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Where a message lies: `place` is new, cur, done or failed; `data` the whole file."""

    worker: str
    place: str
    data: dict[str, Any]


def new_id() -> str:
    """Return an id that sorts by time: `m-`, microseconds since the epoch in base 36, `-`, 4 random digits."""
    global _last
    _last = max(time.time_ns() // 1000, _last + 1)
    return f"m-{_base36(_last)}-{''.join(secrets.choice(_DIGITS) for _ in range(4))}"


def put(paths: WorkerPaths, message: Message) -> None:
    """Queue a message; it is on disk when this returns. Raises OSError (full disk)."""
    write_json(paths.inbox_new / f"{message.id}.json", message_to_dict(message))


def list_new(paths: WorkerPaths) -> list[Message]:
    """Return the queued messages, oldest first; a file that is none goes to `failed` with the reason."""
    return _listed(paths, paths.inbox_new)


def take(paths: WorkerPaths, message_id: str) -> Message:
    """Move a message from `new` to `cur` and write its text beside it; raises UsageError if it is gone."""
    source = paths.inbox_new / f"{message_id}.json"
    data = read_json(source)
    if data is None:
        raise UsageError(f"message {message_id} is not queued")
    message = message_from_dict(data)
    write_text(text_file(paths, message_id), message.text, sync=False)
    source.rename(paths.inbox_cur / source.name)
    return message


def text_file(paths: WorkerPaths, message_id: str) -> Path:
    """Return the file with the bare text of a message that was taken."""
    return paths.inbox_cur / f"{message_id}.txt"


def current(paths: WorkerPaths) -> list[Message]:
    """Return the messages being delivered, oldest first; one that a crash left behind as finished is dropped."""
    for path in paths.inbox_cur.glob("m-*.json"):
        if (paths.inbox_done / path.name).exists() or (paths.inbox_failed / path.name).exists():
            path.unlink(missing_ok=True)
    return _listed(paths, paths.inbox_cur)


def finish(
    paths: WorkerPaths, message_id: str, *, receipt: dict[str, Any] | None = None, error: str | None = None
) -> None:
    """Move a message from `cur` to `done` with its receipt, or to `failed` with an error."""
    source = paths.inbox_cur / f"{message_id}.json"
    data = read_json(source) or {"schema": 1, "id": message_id, "worker": paths.name}
    if error is not None:
        data["error"] = error
    if receipt is not None:
        data["receipt"] = receipt | {"changed": data.get("changed") or []}
    folder = paths.inbox_done if error is None else paths.inbox_failed
    write_json(folder / source.name, data)
    source.unlink(missing_ok=True)
    if (receipt or {}).get("method") != "read_file":
        text_file(paths, message_id).unlink(missing_ok=True)
    _prune(folder, KEEP, len(str(data.get("text", ""))))
    _prune_texts(paths)


def put_back(paths: WorkerPaths, message_id: str) -> None:
    """Move a message from `cur` back to `new`; nothing happens when it is not there."""
    with suppress(FileNotFoundError):
        (paths.inbox_cur / f"{message_id}.json").rename(paths.inbox_new / f"{message_id}.json")
        text_file(paths, message_id).unlink(missing_ok=True)


def look(paths: WorkerPaths, message_id: str) -> Found | None:
    """Return where a message of this worker lies; a move meanwhile is followed."""
    for _ in range(2):  # a rename between two looks is seen the second time round
        for place in ("new", "cur", "done", "failed"):
            data = read_json(paths.inbox / place / f"{message_id}.json")
            if data is not None:
                return Found(paths.name, place, data)
    return None


def find(fleet: FleetPaths, message_id: str) -> Found | None:
    """Return where a message of any worker lies, None if there is no such message."""
    with suppress(FileNotFoundError):
        for folder in sorted(fleet.workers.iterdir()):
            found = look(WorkerPaths(folder), message_id)
            if found is not None:
                return found
    return None


def unsend(fleet: FleetPaths, message_id: str) -> Found:
    """Take a queued message back; raises UsageError when it is unknown or no longer waits."""
    found = find(fleet, message_id)
    if found is None:
        raise UsageError(f"no message {message_id} in fleet {fleet.fleet}")
    paths = fleet.worker(found.worker)
    target = paths.inbox_failed / f"{message_id}.json"
    try:
        (paths.inbox_new / target.name).rename(target)
    except FileNotFoundError:
        now = look(paths, message_id)
        place, error = (now.place, now.data.get("error")) if now else ("", "")
        if error == "unsent":
            raise UsageError(f"message {message_id} was taken back already") from None
        told = {"cur": "is being delivered", "done": "was delivered", "failed": "has failed"}
        raise UsageError(
            f"message {message_id} {told.get(place, 'is gone')}: it cannot be taken back",
            hint=f"hermux interrupt {found.worker}  stops a running turn" if place in ("cur", "done") else "",
        ) from None
    write_json(target, found.data | {"error": "unsent"})
    _prune(paths.inbox_failed, KEEP)
    return Found(found.worker, "failed", found.data | {"error": "unsent"})


def count_new(paths: WorkerPaths) -> int:
    """Return how many messages wait, without reading them."""
    try:
        return sum(
            1 for each in paths.inbox_new.iterdir() if each.name.endswith(".json") and each.name[0] != "."
        )
    except FileNotFoundError:
        return 0


def message_to_dict(message: Message) -> dict[str, Any]:
    """Return the content of a message file."""
    raw = asdict(message) | {
        "kind": str(message.kind),
        "keys": list(message.keys),
        "changed": list(message.changed),
    }
    return {"schema": 1, **raw, "sha256": digest(message.text), "bytes": len(message.text.encode())}


def message_from_dict(raw: dict[str, Any]) -> Message:
    """Read a message file; raises KeyError, TypeError or ValueError when it is none."""
    if not isinstance(raw["text"], str):
        raise TypeError("text is no text")
    json.dumps(raw, ensure_ascii=False).encode()  # a lone surrogate could not be written again
    return Message(
        id=str(raw["id"]),
        worker=str(raw["worker"]),
        kind=MessageKind(raw.get("kind", MessageKind.TEXT)),
        text=raw["text"],
        created=float(raw.get("created", 0.0)),
        sender=str(raw.get("sender", "")),
        keys=tuple(str(each) for each in raw.get("keys") or ()),
        changed=tuple(str(each) for each in raw.get("changed") or ()),
        dialog=int(raw.get("dialog") or 0),
        choice=str(raw.get("choice") or ""),
    )


PASSING = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What says nothing of the message itself: it stays where it is and is read again."""


def _listed(paths: WorkerPaths, folder: Path) -> list[Message]:
    found = []
    for path in _files(folder, ".json"):
        try:
            data = read_json(path)
            if data is None:
                continue  # taken back meanwhile
            message = message_from_dict(data)
            if message.id != path.stem:
                raise ValueError(f"its id is {message.id}")
        except BadFile as error:
            if getattr(error.__cause__, "errno", None) not in PASSING:
                _reject(paths, path, error)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            _reject(paths, path, error)
        else:
            found.append(message)
    return found


def _reject(paths: WorkerPaths, path: Path, error: Exception) -> None:
    why = str(error) if isinstance(error, HermuxError) else f"no message: {error!r}"
    with suppress(OSError):
        path.rename(paths.inbox_failed / f"{path.stem}.bad")
        record = {"schema": 1, "id": path.stem, "worker": paths.name, "error": why}
        write_json(paths.inbox_failed / path.name, record, sync=False)
        sync_directory(paths.inbox_failed)
        _prune(paths.inbox_failed, KEEP)


def _files(folder: Path, suffix: str) -> list[Path]:
    try:
        return sorted(
            each for each in folder.iterdir() if each.suffix == suffix and not each.name.startswith(".")
        )
    except FileNotFoundError:
        return []


def _prune(folder: Path, keep: int, added: int = 0) -> None:
    """Drop the oldest finished messages; after a large one (`added` bytes) also those beyond KEEP_BYTES."""
    files = _files(folder, ".json")
    dropped = files[:-keep]
    if added > KEEP_BYTES // keep:
        dropped += _beyond(files[-keep:])
    for path in dropped:
        path.unlink(missing_ok=True)
        path.with_suffix(".bad").unlink(missing_ok=True)


def _beyond(files: list[Path]) -> list[Path]:
    """Return the oldest of these files that do not fit into KEEP_BYTES; the newest always does."""
    size, over = 0, []
    for path in reversed(files):
        with suppress(FileNotFoundError):
            size += path.stat().st_size
        if size > KEEP_BYTES and path != files[-1]:
            over.append(path)
    return over


def _prune_texts(paths: WorkerPaths) -> None:
    finished = [each for each in _files(paths.inbox_cur, ".txt") if not each.with_suffix(".json").exists()]
    for path in finished[:-KEEP_TEXTS]:
        path.unlink(missing_ok=True)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
    return digits or "0"
