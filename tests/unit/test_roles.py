"""Roles on disk, and the strict YAML below them: every fault with file, line and field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.fleet.role import Approvals, Checkpoints, Fallback, Skills, WorktreeFiles
from orchestrator.fleet.spec import ROLE_ORDER, Restart, RestartPolicy
from orchestrator.store.role_schema import RoleFile, schema_text
from orchestrator.store.roles import find_role, list_roles, load_role, packaged_roles, schema_file
from orchestrator.store.yamlfile import load

GOOD = "description: does things\n"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}


def write(env: dict[str, str], name: str, text: str | None, soul: str | None = "You do things.\n") -> Path:
    folder = Path(env["XDG_CONFIG_HOME"]) / "hermux" / "roles" / name
    folder.mkdir(parents=True, exist_ok=True)
    if text is not None:
        (folder / "role.yaml").write_text(text)
    if soul is not None:
        (folder / "SOUL.md").write_text(soul)
    return folder


def refusal(
    env: dict[str, str], text: str | None, soul: str | None = "You do things.\n"
) -> tuple[Path, list[str]]:
    """The folder and the lines of the error for a role `mine` of that content."""
    folder = write(env, "mine", text, soul)
    with pytest.raises(UsageError) as refused:
        load_role("mine", env)
    return folder, str(refused.value).splitlines()


# ── roles ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ROLE_ORDER)
def test_packaged_roles(name: str, env: dict[str, str]) -> None:
    role = load_role(name, env)
    assert role.name == name and role.description and role.approvals_timeout == 86400
    assert role.soul.startswith("# ") and len(role.soul.splitlines()) <= 60
    for part in ("## How you work", "## Keep your context small", "## Care", "## When you are done"):
        assert part in role.soul
    assert "clarify" in role.toolsets or not role.toolsets
    assert Path(role.source) == packaged_roles() / name


def test_every_packaged_role_is_listed_first(env: dict[str, str]) -> None:
    write(env, "aaa", GOOD)
    write(env, "Bad_Name", GOOD)
    assert list_roles(env) == [*ROLE_ORDER, "aaa"]


def test_a_role_of_ones_own(env: dict[str, str]) -> None:
    text = (
        GOOD
        + "toolsets: [terminal, file]\nmax_turns: 7\nmodel: some/model:tag\nnudge: false\n"
        + "approvals: {timeout: 60}\nrestart:\n  max_restarts: 2\n  backoff: 0.5\n"
    )
    write(env, "mine", text)
    role = load_role("mine", env)
    assert role.toolsets == ("terminal", "file") and role.max_turns == 7 and role.model == "some/model:tag"
    assert not role.nudge and role.approvals_timeout == 60
    assert role.restart == RestartPolicy(max_restarts=2, backoff=0.5)
    assert role.soul == "You do things.\n"


def test_another_persona_for_a_packaged_role(env: dict[str, str]) -> None:
    write(env, "coder", None, soul="You code in Forth.\n")
    role = load_role("coder", env)
    assert role.soul == "You code in Forth.\n"
    assert "terminal" in role.toolsets


@pytest.mark.parametrize(
    ("name", "near"), [("coderr", "coder"), ("reserch", "research"), ("QA", "qa"), ("../coder", "coder")]
)
def test_an_unknown_role_names_the_nearest(name: str, near: str, env: dict[str, str]) -> None:
    with pytest.raises(UsageError) as refused:
        load_role(name, env)
    assert repr(name) in str(refused.value)
    assert f"did you mean {near!r}?" in refused.value.hint
    assert all(role in refused.value.hint for role in ROLE_ORDER)


@pytest.mark.parametrize("name", ["", ".", "..", "/etc", "x" * 100, "a\0b", "zzzzzz"])
def test_a_name_is_never_a_path(name: str, env: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        load_role(name, env)


def test_every_fault_is_named_with_line_and_field(env: dict[str, str]) -> None:
    text = (
        "descripton: typo\n"  # 1: unknown, and so description is missing
        "toolsets:\n"
        "  - terminal\n"
        "  - 3\n"  # 4
        "max_turns: many\n"  # 5
        "nudge: no\n"  # 6: text, not a boolean
        "approvals:\n"
        "  timout: 5\n"  # 8
        "restart:\n"
        "  period: -1\n"  # 10
        "  healthy: .nan\n"  # 11
    )
    folder, lines = refusal(env, text)
    file = folder / "role.yaml"
    for number, field, what in (
        (1, "descripton", "did you mean 'description'?"),
        (1, "description", "missing"),
        (4, "toolsets[1]", "not 3"),
        (5, "max_turns", "'many'"),
        (6, "nudge", "'no'"),
        (8, "approvals.timout", "did you mean 'timeout'?"),
        (10, "restart.period", "greater than 0"),
        (11, "restart.healthy", "'.nan'"),
    ):
        assert any(line.startswith(f"{file}:{number}: {field}: ") and what in line for line in lines), (
            field,
            lines,
        )
    assert len(lines) == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("- a\n", "not a list of fields"),
        ("just words\n", "not a list of fields"),
        ("description:\n", "is empty"),
        ("description: ''\n", "at least 1 character"),
        (GOOD + "toolsets: terminal\n", "list"),
        (GOOD + "toolsets: ['a,b']\n", "without blanks"),
        (GOOD + "max_turns: true\n", "integer"),
        (GOOD + "max_turns: 1.5\n", "integer"),
        (GOOD + "model: 'a b'\n", "without blanks"),
        (GOOD + "restart: {max_restarts: -1}\n", "0"),
        (GOOD + "approvals: 5\n", "approvals"),
        (GOOD + "approvals: {timeout: 1e99}\n", "2678400"),
    ],
)
def test_one_fault(text: str, said: str, env: dict[str, str]) -> None:
    _, lines = refusal(env, text)
    assert len(lines) == 1 and said in lines[0]


def test_missing_and_empty_files(env: dict[str, str]) -> None:
    folder, lines = refusal(env, GOOD, soul=None)
    assert lines == [f"{folder}/SOUL.md: missing (the persona)"]
    _, lines = refusal(env, GOOD, soul=" \n")
    assert lines == [f"{folder}/SOUL.md: empty"]
    (folder / "SOUL.md").write_bytes(b"ok\n\xff")
    with pytest.raises(UsageError, match=r"SOUL.md:2: not UTF-8"):
        load_role("mine", env)
    (folder / "SOUL.md").write_text("x" * 70_000)
    with pytest.raises(UsageError, match="70000 bytes"):
        load_role("mine", env)
    (folder / "role.yaml").unlink()
    with pytest.raises(UsageError, match=r"role.yaml: cannot be read: No such file"):
        load_role("mine", env)


def test_a_relative_config_home_is_ignored(env: dict[str, str], tmp_path: Path) -> None:
    assert list_roles({"XDG_CONFIG_HOME": "here", "HOME": str(tmp_path)}) == list(ROLE_ORDER)


FULL = """\ufeff# saved on another system\r
description: everything\r
model: a/b\r
endpoint: gpu\r
key_env: MY_KEY\r
fallback: [small, {model: big, endpoint: "http://h:1/v1", key_env: K}]\r
max_tokens: 100\r
temperature: 1\r
checkpoints: {enabled: true, max_snapshots: 3}\r
skills: {allow: [], deny: [x]}\r
inherit: [skills, mcp, skills]\r
approvals: {mode: off, timeout: 5, allow: ["rm -rf a"], deny: ["*x*"]}\r
worktree: {copy: [.env], link: [cache], setup: make}\r
restart: never\r
nudge: false\r
"""


def test_every_field(env: dict[str, str]) -> None:
    folder = write(env, "mine", None)
    (folder / "role.yaml").write_bytes(FULL.encode())
    role = load_role("mine", env)
    assert (role.model, role.endpoint, role.key_env, role.max_tokens) == ("a/b", "gpu", "MY_KEY", 100)
    assert role.temperature == 1.0
    assert role.fallback == (Fallback("small"), Fallback("big", "http://h:1/v1", "K"))
    assert role.checkpoints == Checkpoints(True, 3)
    assert role.skills == Skills((), ("x",))
    assert role.inherit == ("skills", "mcp")
    assert role.approvals == Approvals("off", 5.0, ("rm -rf a",), ("*x*",))
    assert role.worktree == WorktreeFiles((".env",), ("cache",), "make")
    assert role.restart.policy is Restart.TEMPORARY
    assert not role.nudge


def test_where_a_field_was_written(env: dict[str, str]) -> None:
    write(env, "mine", GOOD + "restart: no\napprovals:\n  timeout: 5\n")
    found = find_role("mine", env)
    assert found.line("restart.policy") == 2
    assert found.line("approvals.timeout") == 4
    assert found.line("restart.period") == found.line("approvals.mode") == found.line("temperature") == 0


@pytest.mark.parametrize("word", ["no", "never", "Never", "off", "false"])
def test_restart_by_a_word(word: str, env: dict[str, str]) -> None:
    write(env, "mine", GOOD + f"restart: {word}\n")
    assert load_role("mine", env).restart == RestartPolicy(policy=Restart.TEMPORARY)


@pytest.mark.parametrize("written", ["permanent", "Permanent", "{policy: permanent}"])
def test_restart_in_the_words_of_operators(written: str, env: dict[str, str]) -> None:
    write(env, "mine", GOOD + f"restart: {written}\n")
    assert load_role("mine", env).restart == RestartPolicy(policy=Restart.PERMANENT)


def test_a_policy_beside_its_numbers_and_a_nudge_in_own_words(env: dict[str, str]) -> None:
    write(env, "mine", GOOD + "restart: {policy: temporary, period: 9}\nnudge: ' Go on, quietly. '\n")
    role = load_role("mine", env)
    assert role.restart == RestartPolicy(policy=Restart.TEMPORARY, period=9)
    assert role.nudge == "Go on, quietly."


def test_the_schema_for_editors_is_up_to_date() -> None:
    """`scripts/gen-role-schema` writes it."""
    assert schema_file().read_text() == schema_text()


def test_the_template_is_a_role_and_names_every_field(env: dict[str, str]) -> None:
    """Also what stands behind `#` is right: uncommented, each field is taken."""
    text = (packaged_roles() / "_template" / "role.yaml").read_text().replace("@NAME@", "mine")
    write(env, "mine", text)
    assert load_role("mine", env).approvals == Approvals()
    live = re.sub(r"(?m)^( *)#(?=[a-z]|  )", r"\1", text)
    write(env, "mine", live)
    role = load_role("mine", env)
    assert (role.endpoint, role.temperature, role.worktree.setup) == ("gpu", 0.7, "make deps")
    written = set(find_role("mine", env).file.data)
    assert written == set(RoleFile.model_fields)


def test_all_faults_at_once_also_behind_tabs_anchors_and_doubles(env: dict[str, str]) -> None:
    text = (
        "description: &a x\n"  # 1
        "approvals:\n"
        "\tmode: of\n"  # 3: a tab, and the wrong word
        "\ttimeout: [1]\n"  # 4: the same
        "model: *a\n"  # 5
        "max_turns: 5\n"
        "max_turns: x\n"  # 7
        "timeout: 3\n"  # 8: belongs into approvals
        "restart: yes\n"  # 9
        "nudge: no\n"  # 10
        "fallback: [a, {modle: b}, 3]\n"  # 11
        "skills: [x]\n"  # 12
        "approvals.mode: off\n"  # 13
        "worktree: {copy: [/etc/passwd, ../up]}\n"  # 14
    )
    folder, lines = refusal(env, text)
    for number, said in (
        (1, "anchors and aliases"),
        (3, "begins with a tab"),
        (3, "approvals.mode: must be 'manual', 'smart' or 'off', not 'of'; did you mean 'off'?"),
        (4, "begins with a tab"),
        (4, "approvals.timeout: must be a number, not [1]"),
        (5, "anchors and aliases"),
        (7, "max_turns: is there twice (first on line 6)"),
        (8, "timeout: unknown field here; did you mean 'approvals.timeout'?"),
        (9, "restart: 'yes' is no policy; write permanent, transient (the default), temporary"),
        (10, "nudge: must be true, false or a text, not 'no'; write false"),
        (11, "fallback[1].modle: unknown field; did you mean 'model'?"),
        (11, "fallback[2]: must be fields of its own (model, endpoint, key_env), not 3"),
        (12, "skills: must be fields of its own (allow, deny)"),
        (13, "approvals.mode: unknown field; 'mode' stands below 'approvals'"),
        (14, "worktree.copy[0]: a path below the repository is wanted"),
        (14, "worktree.copy[1]: a path below the repository is wanted"),
    ):
        assert any(line.startswith(f"{folder}/role.yaml:{number}: ") and said in line for line in lines), said
    numbers = [int(line.split(":")[1]) for line in lines]
    assert numbers == sorted(numbers)
    assert len(lines) == 17  # and that fallback[1].model is missing


def test_an_alias_that_leads_back_to_itself_ends(env: dict[str, str]) -> None:
    _, lines = refusal(env, GOOD + "toolsets: &a [*a]\n")
    assert all("anchors and aliases" in line for line in lines)


# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────


def test_scalars_stay_what_people_wrote(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(
        "\ufeffa: no\nb: on\nc: 12:30\nd: 2026-01-01\ne: 1_000\nf: 0x10\ng: 010\nh: true\ni: False\nj: 5\n"
        "k: -1.5\nl: 1e3\nm:\nn: ~\no: '5'\np: y\nq: =\nr: <<\n",
        encoding="utf-8",
    )
    found = load(file)
    assert found.data == {
        "a": "no", "b": "on", "c": "12:30", "d": "2026-01-01", "e": "1_000", "f": "0x10", "g": "010",
        "h": True, "i": False, "j": 5, "k": -1.5, "l": 1000.0, "m": None, "n": None, "o": "5", "p": "y",
        "q": "=", "r": "<<",
    }  # fmt: skip
    assert found.line(("k",)) == 11
    assert found.line(("k", "deeper", 3)) == 11
    assert found.line(("absent",)) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: a: is there twice (first on line 1)"),
        ("a:\n  b: 1\n  b: 2\n  b: 3\n", "f.yaml:3: a.b: is there twice (first on line 2)"),
        ("a: [1, 2\nb: 3\n", "f.yaml:2: not valid YAML"),
        ("a: b: c\n", "f.yaml:1: not valid YAML"),
        ("\ta: 1\n", "f.yaml:1: begins with a tab"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
        ("a: &x 1\nb: *x\n", "f.yaml:1: anchors"),
        ("a: !!python/object/apply:os.system [id]\n", "f.yaml:1: a: the tag tag:yaml.org"),
        ("a: !!set {x}\n", "f.yaml:1: a: the tag"),
        ("a: !!binary aGk=\n", "f.yaml:1: a: the tag"),
        ("a: !mine 1\n", "f.yaml:1: a: the tag !mine is not used here"),
        ("? [a]\n: 1\n", "a key is a single word"),
        ("a: !!int x\n", "f.yaml:1: a: "),
        ("a: \x01\n", "not valid YAML"),
        ("a: " + "[" * 60 + "]" * 60, "nested more than 50 deep"),
        ("[" * 200_000, "exceeded maximum nesting depth"),
        ("- " * 100_000, "nested more than 50 deep"),
        ("a: " + "x" * (1 << 20), "larger than"),
    ],
)
def test_faults_of_yaml(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        load(file)
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(file))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(UsageError, match=r"f.yaml:2: not UTF-8 \(byte 0xff\)"):
        load(file)
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path)
