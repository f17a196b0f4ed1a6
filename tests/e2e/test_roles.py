"""What a role says is what Hermes does: each field is seen to have its effect on the real one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.rehearsal.faults import Fault
from orchestrator.rehearsal.server import RehearsalServer
from tests.e2e.play import said, script, shell, tool
from tests.e2e.sandbox import Sandbox, sandbox
from tests.until import until

FULL = """
description: everything at once
toolsets: [terminal, file, skills, memory, clarify]
max_tokens: 777
temperature: 0.25
max_turns: 7
fallback: [spare-model]
inherit: [skills, memories, mcp]
skills: {deny: [launch-rockets]}
checkpoints: {enabled: true, max_snapshots: 2}
approvals:
  timeout: 4000
  allow: ["rm -rf old-*"]
  deny: ["*never-this*"]
restart: never
"""
SECRET = "mcp-secret-0123456789"


def write_role(box: Sandbox, name: str, text: str) -> None:
    folder = box.home / "config" / "hermux" / "roles" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "role.yaml").write_text(text)
    (folder / "SOUL.md").write_text(f"You are the {name} of a test.\n")


def write_skill(home: Path, name: str) -> None:
    folder = home / "skills" / "mine" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: how to {name}\n---\n\nDo it.\n")


def work(box: Sandbox) -> Path:
    """Where `full` works: Hermes takes no snapshots of a home directory."""
    return box.home / "work"


def newest(box: Sandbox) -> dict[str, Any]:
    """Return the newest request to the rehearsal model."""
    found: dict[str, Any] = box.rehearsal("requests?newest=1")["requests"][-1]
    return found


def text_of(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"])


@pytest.fixture(scope="module")
def cast(hermes: Path) -> Iterator[Sandbox]:
    """A home whose user has skills, memories and an MCP server, and the worker `full` of a full role."""
    with sandbox(hermes) as box:
        root = box.home / ".hermes"
        write_skill(root, "bake-bread")
        write_skill(root, "launch-rockets")
        (root / "memories").mkdir()
        (root / "memories" / "MEMORY.md").write_text("The user prefers rye.\n")
        servers = {
            "files": {
                "command": "cat",
                "env": {"TOKEN": SECRET, "FROM_DOTENV": "${MY_TOKEN}"},
                "args": ["-u"],
            },
            "off": {"command": "cat", "auth": "oauth", "enabled": False},
        }
        (root / "config.yaml").write_text(json.dumps({"mcp_servers": servers}))
        (root / ".env").write_text("MY_TOKEN=dotenv-secret-987\n")
        write_role(box, "full", FULL)
        work(box).mkdir()
        done = box.run("spawn", "--role", "full", "--name", "full", "--cwd", str(work(box)), timeout=170)
        assert done.returncode == 0, done.stderr
        yield box


# ── the request ──────────────────────────────────────────────────────────────────────────────────


def test_the_request_carries_what_the_role_says(cast: Sandbox) -> None:
    assert cast.out("ask", "full", script(said("rye it is")))
    request = newest(cast)
    assert request["options"]["max_tokens"] == 777
    assert request["options"]["temperature"] == 0.25
    assert {"terminal", "write_file", "skills_list", "memory"} <= set(request["tools"])
    assert "delegate_task" not in request["tools"]
    assert "You are the full of a test." in text_of(request)


def test_three_failures_and_the_next_request_carries_the_fallback(cast: Sandbox) -> None:
    before = len(cast.rehearsal("requests")["requests"])
    cast.rehearsal("faults", {"count": 3, "status": 500})
    assert cast.out("ask", "full", script(said("from the other one"), say="switch")) == "from the other one"
    models = [request["model"] for request in cast.rehearsal("requests")["requests"][before:]]
    assert models == ["hermux-rehearsal"] * 3 + ["spare-model"]
    entry = next(each for each in cast.json("ls")["workers"] if each["name"] == "full")
    assert (entry["model"], entry["fallback"]) == ("spare-model", ["spare-model"])
    assert "on its fallback spare-model" in cast.out("ls")
    assert "on its fallback spare-model" in cast.out("why", "full")
    cast.out("ask", "full", script(said("back")))  # Hermes tries its first model again with each turn
    assert newest(cast)["model"] == "hermux-rehearsal"
    assert "fallback" not in cast.out("ls")


def test_max_turns_ends_a_turn(cast: Sandbox) -> None:
    """Seven calls, and Hermes asks once more, without tools, for a summary."""
    before = len(cast.rehearsal("requests")["requests"])
    cast.out("ask", "full", script(*[shell(f"echo {n}") for n in range(20)], say="many"))
    asked = cast.rehearsal("requests")["requests"][before:]
    assert 7 <= len(asked) <= 8


# ── approvals ────────────────────────────────────────────────────────────────────────────────────


def test_allowed_runs_unasked_denied_never_and_the_rest_is_asked(cast: Sandbox) -> None:
    for name in ("old-things", "precious"):
        (work(cast) / name).mkdir()
    assert cast.out("ask", "full", script(shell("rm -rf old-things"), said("gone"), say="allowed")) == "gone"
    assert not (work(cast) / "old-things").exists()
    assert (
        cast.out("ask", "full", script(shell("echo never-this"), said("blocked"), say="denied")) == "blocked"
    )
    assert "user-defined deny rule '*never-this*'" in text_of(newest(cast))
    done = cast.run("ask", "full", script(shell("rm -rf precious"), said("no"), say="dangerous"))
    assert done.returncode == 5
    assert "rm -rf precious" in done.stderr
    cast.out("keys", "full", "4")
    cast.out("wait", "full", "--timeout", "60")
    assert (work(cast) / "precious").is_dir()


def test_nobody_is_asked_in_mode_off_but_denied_stays_denied(fleet: Sandbox) -> None:
    write_role(fleet, "free", "description: free\napprovals:\n  mode: off\n  deny: ['*kept*']\n")
    fleet.hire("free", "--role", "free")
    for name in ("gone", "kept"):
        (fleet.home / name).mkdir()
    turn = script(shell("rm -rf gone"), shell("rm -rf kept"), said("done"))
    assert fleet.out("ask", "free", turn) == "done"
    assert not (fleet.home / "gone").exists()
    assert (fleet.home / "kept").is_dir()


# ── what is inherited ────────────────────────────────────────────────────────────────────────────


def test_skills_and_memories_of_the_user_are_there_and_a_denied_skill_is_not(cast: Sandbox) -> None:
    assert cast.out("ask", "full", script(tool("skills_list"), said("listed"))) == "listed"
    seen = text_of(newest(cast))
    assert "bake-bread" in seen
    assert "launch-rockets" not in seen
    assert "The user prefers rye." in seen


def test_a_skill_that_comes_later_is_hidden_by_name_too(cast: Sandbox) -> None:
    """Hermes' own setting does it, so also what the worker brings in itself."""
    profile = cast.home / ".hermes" / "profiles" / f"hx-{cast.fleet}-full"
    write_skill(profile, "launch-rockets")
    write_skill(profile, "fly-kites")
    assert cast.out("ask", "full", script(tool("skills_list"), said("again"))) == "again"
    seen = text_of(newest(cast))
    assert "fly-kites" in seen
    assert "how to launch-rockets" not in seen


def test_the_secrets_of_inherited_servers_stay_out_of_the_configuration_and_the_tools(cast: Sandbox) -> None:
    profile = cast.home / ".hermes" / "profiles" / f"hx-{cast.fleet}-full"
    config = (profile / "config.yaml").read_text()
    assert "AUXILIARY_HERMUX_MCP1_API_KEY" in config
    assert "off:" not in config
    for secret in (SECRET, "dotenv-secret-987"):
        assert secret not in config
        env = cast.dir / "workers" / "full" / "env"
        assert secret in env.read_text()
        assert env.stat().st_mode & 0o777 == 0o600
        process = "\n".join(cast.hermes("full").environ().values())
        assert secret in process  # Hermes has it
    turn = script(shell("env | grep -c AUXILIARY_HERMUX; env > seen.txt"), said("looked"))
    assert cast.out("ask", "full", turn) == "looked"
    seen = (work(cast) / "seen.txt").read_text()
    assert "PATH=" in seen
    assert SECRET not in seen
    assert "dotenv-secret-987" not in seen


def test_servers_of_a_hermes_without_the_mcp_package_are_named(fleet: Sandbox, hermes: Path) -> None:
    has = subprocess.run(
        [hermes.resolve().parent / "python", "-c", "import mcp"], capture_output=True, check=False
    )
    root = fleet.home / ".hermes"
    root.mkdir()
    (root / "config.yaml").write_text("mcp_servers: {files: {command: cat}}\n")
    write_role(fleet, "serve", "description: x\ninherit: [mcp]\n")
    done = fleet.run("spawn", "--role", "serve", timeout=170)
    assert done.returncode == 0
    assert ("has no package `mcp`" in done.stderr) == (has.returncode != 0)


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────


def snapshots(profile: Path) -> list[int]:
    """Return how many snapshots each working directory has."""
    stores = [
        path.parent for path in (profile / "checkpoints").rglob("HEAD") if (path.parent / "objects").is_dir()
    ]
    found = []
    for store in stores:
        git = ["git", f"--git-dir={store}"]
        names = subprocess.run(
            [*git, "for-each-ref", "--format=%(refname)"], capture_output=True, text=True, check=True
        )
        for name in names.stdout.split():
            counted = subprocess.run(
                [*git, "rev-list", "--count", name], capture_output=True, text=True, check=True
            )
            found.append(int(counted.stdout))
    return found


def test_checkpoints_are_taken_and_bounded(cast: Sandbox) -> None:
    profile = cast.home / ".hermes" / "profiles" / f"hx-{cast.fleet}-full"
    for number in range(4):
        turn = script(tool("write_file", path="page.txt", content=f"version {number}\n"), said(f"v{number}"))
        assert cast.out("ask", "full", turn) == f"v{number}"
    assert until(lambda: snapshots(profile), 20) == [2]


def test_restart_never_holds_at_the_first_death(cast: Sandbox) -> None:
    write_role(cast, "once", "description: x\nrestart: no\n")
    cast.hire("once", "--role", "once")
    cast.hermes("once").kill()
    assert cast.shows("once", "held")["attempt"] == 1


def test_a_fallback_on_another_server_has_its_own_key(fleet: Sandbox) -> None:
    """Each server gets its own key, and the tools get neither."""
    with RehearsalServer() as one, RehearsalServer() as other:
        fleet.env.update(ONE_KEY="key-of-the-first-one", OTHER_KEY="key-of-the-other")
        role = (
            f"description: x\nendpoint: {one.url}\nkey_env: ONE_KEY\n"
            f"fallback: [{{model: second, endpoint: '{other.url}', key_env: OTHER_KEY}}]\n"
        )
        write_role(fleet, "two", role)
        fleet.hire("two", "--role", "two")
        one.faults.add(Fault(status=500), 3)
        fleet.out("ask", "two", script(shell("env > seen.txt"), said("switched")))
        keys = [
            {request.headers["authorization"] for request in each.record.since()} for each in (one, other)
        ]
    assert [len(each) for each in keys] == [1, 1]
    assert keys[0] != keys[1]
    assert "20 characters" in keys[0].pop()
    assert "16 characters" in keys[1].pop()
    seen = (fleet.home / "seen.txt").read_text()
    assert "key-of-the" not in seen


@pytest.mark.parametrize(
    ("role", "said_", "flags"),
    [
        ("description: x\ntoolsets: [terminal, fil]\n", "no toolset 'fil'; did you mean 'file'?", ()),
        ("description: x\n", "--toolsets: Hermes", ("--toolsets", "termnal")),
        ("description: x\nskills: {allow: [bake]}\n", "skills.allow names no skill: 'bake'", ()),
        ("description: x\nendpoint: nowhere-saved\n", "role bad: ", ()),
        ("description: x\n\trestart: 5\n", "begins with a tab", ()),
    ],
)
def test_bad_roles_make_nothing(shared_fleet: Sandbox, role: str, said_: str, flags: tuple[str, ...]) -> None:
    write_role(shared_fleet, "bad", role)
    done = shared_fleet.run("spawn", "--role", "bad", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert said_ in done.stderr
    assert not list(shared_fleet.dir.glob("workers/*"))
    assert not list(shared_fleet.home.glob(".hermes/profiles/*"))


def test_an_oauth_login_is_never_copied(shared_fleet: Sandbox) -> None:
    root = shared_fleet.home / ".hermes"
    root.mkdir(exist_ok=True)
    (root / "config.yaml").write_text(
        "mcp_servers: {linear: {url: 'https://mcp.example/mcp', auth: oauth}}\n"
    )
    write_role(shared_fleet, "login", "description: x\ninherit: [mcp]\n")
    done = shared_fleet.run("spawn", "--role", "login")
    assert done.returncode == 2
    assert "linear" in done.stderr
    assert "OAuth login" in done.stderr
    assert not list(shared_fleet.dir.glob("workers/*"))
