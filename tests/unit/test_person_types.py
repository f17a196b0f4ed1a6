"""A person at the keyboard of a worker while a message is delivered: whoever came first is seen, and kept apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from orchestrator.fleet import action as act
from orchestrator.fleet.beside import QUIET
from orchestrator.fleet.events import EventName
from orchestrator.fleet.observation import Acted, Observation
from orchestrator.fleet.worker import Glance
from tests.unit.world import NAME, World


@dataclass
class Shared(World):
    """A world in which a person presses keys; tmux refuses what they came before, as it does."""

    keyed: float = 0.0
    before_paste: str = ""
    before_enter: str = ""

    def type(self, text: str) -> None:
        """Press keys now: they stand in the prompt at once, before whatever hermux types next."""
        assert self.hermes is not None
        self.hermes.prompt += text.replace("\b", "")
        self.keyed = self.now

    def _glance(self) -> Glance:
        return replace(super()._glance(), keyed=int(self.keyed))

    def _do(self, action: act.Action) -> list[Observation]:
        match action:
            case act.Paste() if action.keyed is not None:
                self.type_once("before_paste")
                return self._unless_typed(action, action.keyed)
            case act.Press() if action.guard is not None:
                self.type_once("before_enter")
                return self._unless_typed(action, action.guard.keyed)
            case _:
                return super()._do(action)

    def submit(self, text: str) -> None:
        """Type a text of the person's own and press Enter, faster than anybody looks."""
        assert self.hermes is not None
        self.type(text)
        self._press(("Enter",))

    def _emit(self, name: EventName, **data: object) -> None:
        size = {"bytes": len(self.hermes.asked.encode())} if self.hermes and self.hermes.asked else {}
        super()._emit(name, **data, **size)

    def type_once(self, which: str) -> None:
        text = getattr(self, which)
        setattr(self, which, "")
        if text:
            self.type(text)

    def _unless_typed(self, action: act.Paste | act.Press, keyed: int) -> list[Observation]:
        if int(self.keyed) != keyed:
            return [Acted(NAME, action.token, ok=False, detail="a person typed meanwhile")]
        return [*super()._do(action), Acted(NAME, action.token)]


def until_pasted(world: Shared) -> None:
    """Run until the message stands in the prompt, and no Enter was pressed."""
    for _ in range(100):
        world.run(0.1)
        if world.hermes is not None and world.hermes.prompt:
            return
    raise AssertionError("nothing was pasted")


def asked(world: Shared) -> list[str]:
    return [text for _, text in world.db]


def ready() -> Shared:
    world = Shared()
    world.want()
    world.run(3)
    return world


def test_a_key_just_before_the_paste_puts_the_message_back() -> None:
    world = ready()
    world.before_paste = "x"
    world.send("m1", "hello")
    world.run(5)
    assert world.hermes is not None and world.hermes.prompt == "x"
    assert world.worker.draft == "x"
    world.hermes.prompt = ""
    world.run(30)
    assert asked(world) == ["hello"]


def test_what_was_put_back_is_not_overtaken() -> None:
    world = ready()
    world.before_paste = "x"
    for number in (1, 2, 3):
        world.send(f"m{number}", f"text {number}")
    world.run(5)
    assert world.hermes is not None and asked(world) == []
    world.hermes.prompt = ""
    world.run(60)
    assert asked(world) == ["text 1", "text 2", "text 3"]


def test_who_comes_between_every_time_delays_and_reorders_nothing() -> None:
    world = ready()
    for number in (1, 2, 3):
        world.send(f"m{number}", f"text {number}")
    for _ in range(12):
        world.before_paste = "\b"  # a key that leaves the prompt empty
        world.run(3.1)
    world.before_paste = ""
    world.run(60)
    assert asked(world) == ["text 1", "text 2", "text 3"]


def test_a_key_just_before_enter_is_not_submitted() -> None:
    world = ready()
    world.before_enter = "x"
    world.send("m1", "hello")
    world.run(20)
    assert world.hermes is not None and world.hermes.prompt == "hellox"
    assert asked(world) == [] and world.worker.draft == "hellox"
    assert world.worker.op is not None and world.worker.op.flight is not None
    assert not world.worker.op.flight.entered, "a death now puts it back: it was not submitted"
    world.hermes.prompt = "hello"
    world.run(30)
    assert asked(world) == ["hello"]


@pytest.mark.parametrize("own, again", [("hey", True), ("hello, longer", False)])
def test_who_wipes_a_mixed_prompt_and_sends_other_text(own: str, again: bool) -> None:
    """A shorter text cannot hold the message, which is typed anew; else a person is told to look."""
    world = ready()
    world.send("m1", "hello")
    until_pasted(world)
    world.type("x")
    world.run(1)
    assert world.hermes is not None and world.hermes.prompt == "hellox"
    world.hermes.prompt = ""
    world.submit(own)
    world.run(30)
    assert asked(world) == ([own, "hello"] if again else [own])
    assert world.inbox["m1"] == ("done" if again else "failed")


def test_who_types_and_wipes_is_waited_for() -> None:
    world = ready()
    world.type("")
    world.send("m1", "hello")
    world.run(QUIET - 1)
    assert world.hermes is not None and world.hermes.prompt == ""
    world.run(30)
    assert asked(world) == ["hello"]
