"""The shape of `role.yaml`. Imported only when a role is read: pydantic takes 0.1 s to import."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(gt=0, le=31 * 86_400.0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Approvals(_Strict):
    """How long dialogs wait."""

    timeout: Seconds = 86_400.0
    """Seconds an approval or a question waits for a person."""


class Restart(_Strict):
    """How often a worker that crashed is started again; see `RestartPolicy`."""

    max_restarts: Annotated[int, Field(ge=0, le=1000)] = 5
    period: Seconds = 300.0
    backoff: Seconds = 1.0
    backoff_cap: Seconds = 60.0
    healthy: Seconds = 120.0


class RoleFile(_Strict):
    """`role.yaml`, whole."""

    description: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\r\n]+$")]
    """One line for lists."""
    toolsets: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]] = []
    """Hermes toolsets; none = Hermes' own default."""
    max_turns: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Model calls a turn may take; 0 = Hermes' own default."""
    model: Annotated[str, Field(max_length=200, pattern=r"^[^\s\x00-\x1f]*$")] = ""
    """Model asked of the endpoint; "" = the endpoint's own."""
    nudge: bool = True
    """Tell a worker that was interrupted by a crash to go on."""
    approvals: Approvals = Approvals()
    restart: Restart = Restart()
