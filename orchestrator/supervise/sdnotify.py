"""Telling systemd that the supervisor is ready and alive (sd_notify(3)): datagrams to $NOTIFY_SOCKET, no library."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping

BEAT = 5.0
"""Seconds between two signs of life; the unit's WatchdogSec is twelve times that."""


class Manager:
    """The service manager that started this process; without one every call does nothing."""

    def __init__(self, env: MutableMapping[str, str] = os.environ) -> None:
        """Take the variables out of `env`, so that no worker speaks for the supervisor."""
        self._address = env.pop("NOTIFY_SOCKET", "")
        for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
            env.pop(name, None)
        self._beat = 0.0

    @property
    def there(self) -> bool:
        """Whether a service manager listens."""
        return bool(self._address)

    def ready(self) -> None:
        """Say that workers are adopted, and that what is wanted is being started."""
        self._tell("READY=1")

    def alive(self) -> None:
        """Say that the loop turns, at most every `BEAT` seconds."""
        if self._address and time.monotonic() - self._beat >= BEAT:
            self._beat = time.monotonic()
            self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that it ends; workers go on."""
        self._tell("STOPPING=1")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as pipe:
                pipe.setblocking(False)
                pipe.sendto(text.encode(), address)
        except OSError:
            return  # a manager that cannot be told is no reason to end
