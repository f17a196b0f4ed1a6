"""What may be deleted: one file or folder, with what tells it from another one that takes its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file or a folder that nobody needs any more."""

    kind: str
    below: Path
    """The folder that is trusted: no symbolic link is followed on the way from it to the file."""
    name: str
    """The path below it."""
    bytes: int
    time: float
    """When it was written last, seconds since the epoch; of a folder, the newest file in it."""
    why: str
    """Why it is safe to delete."""
    device: int
    inode: int

    @property
    def path(self) -> Path:
        return self.below / self.name
