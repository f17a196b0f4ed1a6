"""The programming interface, as a script of a user's own would use it."""

from __future__ import annotations

import subprocess
import sys

from tests.e2e.sandbox import Sandbox

SCRIPT = """
import os
from orchestrator import Answer, Fleet
from orchestrator.errors import PersonNeeded, UsageError, WorkerFailed

fleet = Fleet.open(os.environ["HERMUX_FLEET"])
assert fleet.workers() == []
worker = fleet.spawn("coder")
assert worker.name == "coder-1", worker
assert worker.state()["phase"] == "up"
answer = worker.ask("Who are you?")
assert isinstance(answer, Answer)
assert answer.text.endswith("You said: Who are you?"), answer
assert (answer.worker, answer.receipt["method"]) == ("coder-1", "paste")
assert answer.tokens_in > 0 and answer.seconds > 0
message = worker.send('{"steps": [{"text": "second"}]}')
fleet.wait_message(message, timeout=60)
worker.wait(timeout=60)
assert "second" in worker.peek(40)
turns = worker.transcript()
assert [turn["user"] for turn in turns] == ["Who are you?", '{"steps": [{"text": "second"}]}']
assert worker.transcript(last=1)[0]["answer"] == "second"
try:
    worker.ask('{"steps": [{"status": 404}]}')
except WorkerFailed as error:
    assert "HTTP 404" in str(error)
else:
    raise AssertionError("a failed turn raised nothing")
assert worker.ask("and again").text.endswith("You said: and again")
try:
    fleet.spawn("codr")
except UsageError as error:
    assert "coder" in error.hint
else:
    raise AssertionError("an unknown role raised nothing")
assert [each.name for each in fleet.select(["c*"])] == ["coder-1"]
worker.stop()
assert worker.state()["phase"] == "stopped"
worker.start()
assert worker.ask("once more").session == answer.session
worker.stop(grace=0)
worker.remove()
assert fleet.names() == []
print("done")
"""


def test_the_whole_of_it(fleet: Sandbox) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=fleet.env,
        cwd=fleet.home,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
