"""A turn of which nothing comes, on the real Hermes: a hung model, a silent tool, and a tool that works silently."""

from __future__ import annotations

from tests.e2e.play import script, shell
from tests.e2e.sandbox import Sandbox
from tests.e2e.test_restart import write_role
from tests.until import until

STALL = "stall: {turn: 4, tool: 12, then: restart}\n"


def test_silence_is_told_from_work(shared_fleet: Sandbox) -> None:
    box, gate = shared_fleet, shared_fleet.home / "gate"
    role = write_role(box, "watched", STALL)
    for name in ("hung", "sleeps", "compiles"):
        box.hire(name, "--role", role)
    (box.home / "compile").write_text(f"while [ ! -e {gate} ]; do :; done\n")
    box.out("send", "compiles", script(shell(f"sh {box.home / 'compile'}")))
    box.out("send", "sleeps", script(shell("sleep 300")))
    box.out("send", "hung", script({"delay": 150}))
    stalled = until(lambda: box.worker("hung").get("stalled"), 60, what="the hung turn is reported") or {}
    assert stalled["done"] == "reported"
    assert "stalled for" in box.out("ls")
    assert "nothing has come of it for" in box.out("why", "hung")
    assert any("hung: stalled" in alert["text"] for alert in box.json("ls")["alerts"])
    until(
        lambda: (box.worker("hung")["last_turn"] or {}).get("outcome") == "interrupted",
        60,
        what="interrupted",
    )
    until(lambda: box.worker("sleeps").get("stalled"), 60, what="the silent tool is reported")
    assert "sleep 300" in next(a["text"] for a in box.json("ls")["alerts"] if a["text"].startswith("sleeps"))
    until(lambda: (box.worker("sleeps")["last_turn"] or {}).get("outcome") == "interrupted", 60)
    compiles = box.worker("compiles")
    assert (compiles["word"], compiles["stalled"], compiles["attempt"]) == ("busy", None, 1)
    gate.touch()
    until(
        lambda: (box.worker("compiles")["last_turn"] or {}).get("outcome") == "ok", 60, what="it has compiled"
    )
    assert not any("stalled" in line for line in box.out("why", "compiles").splitlines())
    assert [box.worker(name)["attempt"] for name in ("hung", "sleeps")] == [1, 1]
    box.out("stop", "hung", "sleeps", "compiles", "--now")
