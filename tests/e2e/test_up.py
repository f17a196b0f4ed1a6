"""`hermux up` on the real Hermes: three workers, a group, a start order, a first prompt, a change, down."""

from __future__ import annotations

import json
from hashlib import sha256

from tests.e2e.sandbox import Sandbox

FILE = """\
schema: 1
workers:
  lead:
    role: orchestrator
    prompt: Say hello once.
  coder:
    count: 2
    after: [lead]
    env:
      GREETING: hi ${WHO}
groups:
  front: [lead, coder-1]
"""


def files(box: Sandbox) -> dict[str, str]:
    """A checksum of all that `up` may write; the supervisor's own files change by themselves."""
    places = [box.dir / "desired.json", box.dir / "up.lock", *box.dir.glob("workers/*/env")]
    places += [*box.dir.glob("workers/*/inbox/*/*.json"), *box.home.glob(".hermes/profiles/*/SOUL.md")]
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in places if path.exists()}


def up(box: Sandbox, *args: str, code: int = 0) -> str:
    done = box.run("up", *args, env={"WHO": "there"}, timeout=170)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_up(fleet: Sandbox) -> None:
    file = fleet.home / "fleet.yaml"
    file.write_text(FILE)
    told = up(fleet, "--dry-run")
    assert "lead" in told and "create" in told and "after lead" in told
    assert not (fleet.home / "state" / "hermux").exists() and not (fleet.home / ".hermes").exists()

    up(fleet)
    shown = {each["name"]: each for each in fleet.json("ls")["workers"]}
    assert list(shown) == ["lead", "coder-1", "coder-2"]
    began = {name: json.loads((fleet.dir / "workers" / name / "spec.json").read_text()) for name in shown}
    assert began["coder-1"]["after"] == ["lead"]
    journal = [json.loads(line) for line in (fleet.dir / "journal.jsonl").read_text().splitlines()]
    ready = next(
        n
        for n, line in enumerate(journal)
        if line["worker"] == "lead" and line["text"].startswith("up after")
    )
    starts = [
        n
        for n, line in enumerate(journal)
        if line["worker"].startswith("coder") and "starting attempt 1" in line["text"]
    ]
    assert len(starts) == 2 and min(starts) > ready, "coders start after lead is ready"
    assert "export GREETING='hi there'" in (fleet.dir / "workers" / "coder-1" / "env").read_text()

    fleet.out("wait", "lead", "--timeout", "60")
    before = files(fleet)
    assert up(fleet).splitlines()[0] == "nothing to do"
    assert files(fleet) == before, "a second up touches nothing"
    prompts = list((fleet.dir / "workers" / "lead" / "inbox").glob("*/*.json"))
    assert len(prompts) == 1, "the first prompt was sent once"

    assert (
        set(fleet.out("send", "@front", "Hello.").split())
        and "no group" in fleet.run("send", "@back", "x").stderr
    )
    fleet.out("wait", "@front", "--timeout", "60")

    file.write_text(FILE.replace("hi ${WHO}", "hello").replace("count: 2", "count: 1\n    max_turns: 7"))
    before = files(fleet)
    told = up(fleet, "--dry-run", "--prune")
    assert (
        "max_turns" in told and "env GREETING" in told and "restarted when idle" in told and "coder-2" in told
    )
    assert "hello" not in told, "no value of a variable is shown"
    assert files(fleet) == before, "a dry run changes nothing"
    hermes = {name: fleet.hermes(name).pid for name in ("lead", "coder-1")}
    session = fleet.worker("coder-1")["session"]
    told = up(fleet)
    assert "coder-1 was restarted" in told and "coder-2 is no longer declared" in told
    assert fleet.hermes("lead").pid == hermes["lead"] and fleet.hermes("coder-1").pid != hermes["coder-1"]
    assert fleet.worker("coder-1")["session"] == session
    assert fleet.worker("coder-2")["phase"] == "up"
    up(fleet, "--prune")
    assert fleet.worker("coder-2")["phase"] == "stopped"

    fleet.out("down")
    assert {each["phase"] for each in fleet.state()["workers"].values()} == {"stopped"}
    assert "started" in up(fleet)
    assert fleet.worker("coder-1")["session"] == session
    assert fleet.worker("coder-2")["phase"] == "stopped"
    assert len(list((fleet.dir / "workers" / "lead" / "inbox").glob("*/*.json"))) == 2, "not prompted again"


def test_an_error_changes_nothing(fleet: Sandbox) -> None:
    fleet.out("spawn", "--name", "mine", "--role", "qa")
    (fleet.home / "fleet.yaml").write_text("workers:\n  coder: {}\n  mine: {role: qa}\n")
    before = files(fleet)
    told = up(fleet, code=2)
    assert "fleet.yaml:3: workers.mine: a worker mine exists already and was made by hand" in told
    assert files(fleet) == before


def test_what_stop_and_rm_keep(fleet: Sandbox) -> None:
    """The table in docs/fleet-file.md."""
    (fleet.home / "fleet.yaml").write_text("workers: {qa: {prompt: Hello.}}\n")
    up(fleet)
    fleet.out("wait", "qa", "--timeout", "60")
    worker, profile = (
        fleet.dir / "workers" / "qa",
        fleet.home / ".hermes" / "profiles" / f"hx-{fleet.fleet}-qa",
    )
    fleet.tmux("send-keys", "-t", "=qa:", "C-d")  # at an empty prompt: a person leaves
    fleet.shows("qa", "stopped")
    assert "started" in up(fleet)
    assert fleet.worker("qa")["word"] == "ready"
    assert fleet.run("stop").returncode == 2 and fleet.run("stop", "qa", "--all").returncode == 2
    fleet.out("stop", "--all")
    assert not fleet.processes("qa")
    assert (worker / "env").exists() and (profile / "state.db").exists() and list(worker.glob("inbox/done/*"))
    fleet.out("rm", "--all")
    assert not worker.exists() and not profile.exists() and fleet.json("ls")["workers"] == []
    (kept,) = (fleet.dir / "archive").iterdir()
    assert (kept / profile.name / "state.db").exists() and list(kept.glob("worker/inbox/done/*"))
    assert not (kept / "worker" / "env").exists(), "the key is gone"
