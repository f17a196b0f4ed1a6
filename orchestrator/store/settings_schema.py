"""The shape of hermux' own `config.yaml`. Imported only when there is one: pydantic takes 0.1 s to import."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NotifyFields(_Strict):
    """How people are called to a dialog."""

    bell: bool = True
    """Ring the terminals of whoever is attached."""
    command: list[Annotated[str, Field(min_length=1, max_length=4096)]] = []
    """Program and arguments, no shell; it gets a JSON object on standard input."""
    timeout: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    """Seconds after which the command is ended."""


class MemoryFields(_Strict):
    """When a worker is started; 0 = hermux' own rule (docs/deployment.md)."""

    headroom_mb: Annotated[int, Field(ge=0, le=1 << 30)] = 0
    """MB that stay free."""
    worker_mb: Annotated[int, Field(ge=0, le=1 << 30)] = 0
    """MB for a worker until the fleet's workers have been measured."""


class SettingsFile(_Strict):
    """`config.yaml`, whole."""

    notify: NotifyFields = NotifyFields()
    memory: MemoryFields = MemoryFields()
