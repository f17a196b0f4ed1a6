"""A Hermes that outlives its launch script for a while: its database tells nothing before it is dead."""

from __future__ import annotations

import signal

import pytest

from orchestrator.fleet import action as act
from orchestrator.fleet.observation import Gone, Observation, Swept
from orchestrator.fleet.worker import Outcome, OutcomeKind
from tests.unit.world import NAME, World


class Outliving(World):
    """The launch script can be killed alone; Hermes goes on until it is killed itself."""

    def kill_script(self) -> None:
        self.seen.append(Gone(NAME, self.worker.attempt, Outcome(OutcomeKind.SIGNALLED, 9)))

    def _do(self, action: act.Action) -> list[Observation]:
        if isinstance(action, act.Sweep) and self.hermes is not None:
            if action.number == signal.SIGKILL:
                self.hermes = None
            return [Swept(NAME, action.token, 1)]
        if isinstance(action, act.Autopsy):
            assert self.hermes is None, "the database of a live Hermes was read"
        return super()._do(action)


@pytest.mark.parametrize("tenths", range(16))
def test_a_message_is_stored_once_whenever_the_script_dies(tenths: int) -> None:
    world = Outliving()
    world.want()
    world.run(3)
    world.send("m-1", "hello")
    world.run(tenths / 10)
    world.kill_script()
    world.run(20)
    assert world.inbox["m-1"] == "done"
    assert [text for _, text in world.db] == ["hello"]
    assert world.worker.word == "ready"
