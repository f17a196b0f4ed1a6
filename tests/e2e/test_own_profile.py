"""`--hermes-profile`: a worker on a profile that the user had before, which stays the user's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pexpect
import pytest

from orchestrator.rehearsal.server import RehearsalServer
from tests.e2e.play import said, script
from tests.e2e.sandbox import Sandbox, sandbox
from tests.until import until


@dataclass(frozen=True, slots=True)
class Owner:
    """A person with the Hermes profile `mine`, on a model server of its own."""

    box: Sandbox
    server: RehearsalServer
    hermes: Path

    @property
    def root(self) -> Path:
        return self.box.home / ".hermes"

    @property
    def home(self) -> Path:
        return self.root / "profiles" / "mine"


def write_config(home: Path, url: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(
        "# my own\nmodel:\n  provider: custom\n"
        f"  base_url: {url}   # here\n  default: my-model\n  context_length: 131072\n"
        "plugins:\n  enabled: []   # none yet\n"
    )


@pytest.fixture
def owner(hermes: Path) -> Iterator[Owner]:
    with sandbox(hermes) as box, RehearsalServer() as server:
        made = Owner(box, server, hermes)
        write_config(made.home, server.url)
        yield made


def tree(home: Path) -> dict[str, str]:
    """Return the digest of each file of a profile."""
    return {
        str(p.relative_to(home)): sha256(p.read_bytes()).hexdigest() for p in home.rglob("*") if p.is_file()
    }


def test_with_a_yes_the_plugin_is_put_and_taken_away(owner: Owner) -> None:
    box, config = owner.box, owner.home / "config.yaml"
    before = config.read_text()
    done = box.run("spawn", "--name", "w", "--hermes-profile", "mine", "--yes", timeout=170)
    assert done.returncode == 0, done.stderr
    assert f"my-model at {owner.server.url}" in done.stdout
    assert "enabled: [hermux]   # none yet" in config.read_text()
    assert box.out("ask", "w", script(said("yours"))) == "yours"
    assert owner.server.record.since()[-1].model == "my-model"
    entry = box.worker("w")
    assert (entry["plugin"], entry["hermes_profile"], entry["model"]) == (True, "mine", "my-model")
    other = box.run("spawn", "--hermes-profile", "mine", "-F", f"{box.fleet}b")
    assert other.returncode == 2
    assert f"belongs to the worker w of fleet {box.fleet}" in other.stderr
    box.out("stop", "w")
    gone = box.run("rm", "w", "--unplug")
    assert gone.returncode == 0
    assert "the plugin is out of it" in gone.stderr
    assert not (owner.home / "plugins" / "hermux").exists()
    assert "hermux" not in config.read_text()
    assert "model:" in config.read_text() and before.splitlines()[0] in config.read_text()
    assert (owner.home / "state.db").is_file()  # what Hermes itself keeps there stays


def test_without_a_yes_nothing_is_written_and_the_screen_alone_is_followed(owner: Owner) -> None:
    box = owner.box
    before = tree(owner.home)
    done = box.run("spawn", "--name", "w", "--hermes-profile", "mine", timeout=170)
    assert done.returncode == 0, done.stderr
    assert "followed by its screen alone" in done.stderr
    assert box.shows("w", "ready")["witness"] == "screen"
    assert until(lambda: [a for a in box.json("ls")["alerts"] if "plugin" in a["text"]], 60)
    after = tree(owner.home)
    assert after["config.yaml"] == before["config.yaml"]
    assert not (owner.home / "plugins" / "hermux").exists()
    assert not (owner.home / ".hermux").exists()
    box.out("stop", "w")
    removed = box.run("rm", "w", "--purge")
    assert "your Hermes profile mine is as it was" in removed.stderr
    assert (owner.home / "config.yaml").is_file()


def test_a_person_is_asked_at_a_terminal(owner: Owner) -> None:
    child = owner.box.terminal("spawn", "--name", "w", "--hermes-profile", "mine", "--no-wait", columns=200)
    child.expect("May hermux put its plugin into")
    child.sendline("n")
    child.expect(pexpect.EOF, timeout=60)
    child.close()
    assert child.exitstatus == 0
    assert not (owner.home / "plugins" / "hermux").exists()


def test_a_running_hermes_keeps_the_profile(owner: Owner) -> None:
    """Also an idle one that nobody has said a word to: it is found by the files that it holds open."""
    env = {**owner.box.env, "HERMES_HOME": str(owner.root)}
    child = pexpect.spawn(
        str(owner.hermes), ["-p", "mine", "--cli"], env=env, cwd=str(owner.box.home), timeout=60
    )
    try:
        until(lambda: (owner.home / "state.db").exists() or _drain(child), 60, what="Hermes runs")
        refused = owner.box.run("spawn", "--hermes-profile", "mine", "--yes")
        assert refused.returncode == 2
        assert f"a Hermes runs on the profile mine (pid {child.pid}" in refused.stderr
        assert not list(owner.box.dir.glob("workers/*"))
        assert not (owner.home / "plugins" / "hermux").exists()
    finally:
        child.close(force=True)


def _drain(child: pexpect.spawn) -> bool:
    with suppress(pexpect.TIMEOUT):
        child.read_nonblocking(65536, timeout=0.2)
    return False


@pytest.mark.parametrize(
    ("args", "said_"),
    [
        (("--hermes-profile", "mien"), "did you mean 'mine'?"),
        (("--hermes-profile", "../mine"), "there is no Hermes profile"),
        (("2", "--hermes-profile", "mine"), "takes one worker"),
        (("--hermes-profile", "mine", "--endpoint", "rehearsal"), "--endpoint and --hermes-profile exclude"),
        (("--hermes-profile", "mine", "--max-turns", "3"), "--max-turns and --hermes-profile exclude"),
        (("--hermes-profile", "empty"), "has no model set up"),
        (("--yes",), "--yes goes with --hermes-profile"),
        (("--hermes-profile", "lodger"), "uses the OAuth login nous of the default profile"),
    ],
)
def test_what_is_refused(owner: Owner, args: tuple[str, ...], said_: str) -> None:
    (owner.root / "profiles" / "empty").mkdir()
    lodger = owner.root / "profiles" / "lodger"
    lodger.mkdir()
    (lodger / "config.yaml").write_text("model: {provider: nous, default: big}\n")
    (owner.root / "auth.json").write_text('{"providers": {"nous": {"refresh_token": "once"}}}')
    done = owner.box.run("spawn", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert said_ in done.stderr
    assert not list(owner.box.dir.glob("workers/*"))


def test_the_default_profile_is_the_root_itself(owner: Owner) -> None:
    write_config(owner.root, owner.server.url)
    owner.box.hire("w", "--hermes-profile", "default", "-m", "another-model", "--yes")
    assert owner.box.out("ask", "w", script(said("at home"))) == "at home"
    assert owner.server.record.since()[-1].model == "another-model"
    assert (owner.root / "state.db").is_file()


def test_a_role_made_by_hand_is_shown_and_used(owner: Owner) -> None:
    """From `role new` to the first answer, with what editors are told about it."""
    box = owner.box
    folder = Path(box.out("role", "new", "mine", "-q"))
    first = (folder / "role.yaml").read_text().splitlines()[0]
    schema = Path(first.partition("$schema=")[2])
    assert json.loads(schema.read_text())["title"] == "role.yaml of hermux"
    assert box.run("role", "new", "mine").returncode == 2
    shown = {each["field"]: each for each in box.json("role", "show", "mine")["settings"]}
    assert (
        shown["approvals.mode"]["origin"].endswith("role.yaml:44")
        or shown["approvals.mode"]["value"] == "manual"
    )
    assert shown["temperature"] == {"field": "temperature", "value": None, "origin": "default"}
    assert "mine" in [each["name"] for each in box.json("role", "ls")["roles"]]
    box.hire("w", "--role", "mine", "--endpoint", owner.server.url, "-m", "some-model")
    assert box.out("ask", "w", script(said("made"))) == "made"
    assert owner.server.record.since()[-1].model == "some-model"


def test_hermes_itself_reads_what_is_written(owner: Owner) -> None:
    """The text edit leaves a file that Hermes takes: its own command lists the plugin as enabled."""
    owner.box.out("spawn", "--name", "w", "--hermes-profile", "mine", "--yes", "--no-wait")
    listed = subprocess.run(
        [owner.hermes, "-p", "mine", "plugins", "list"],
        env={**owner.box.env, "HERMES_HOME": str(owner.root), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    line = next(line for line in listed.stdout.splitlines() if "hermux" in line)
    assert "enabled" in line
