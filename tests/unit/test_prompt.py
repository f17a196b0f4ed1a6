"""The prompt reader against captures of the real Hermes: 0.19.0, 0.22.2, other skins, narrow panes.

`tests/screens/hermes-*` are panes of the default profile, `profile-*` of `hx-default-coder-1`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.fleet.deliver import squash
from orchestrator.fleet.prompt import DIALOGS, PromptKind
from orchestrator.hermes.prompt import Prompt, read_prompt

SCREENS = Path(__file__).parents[1] / "screens"
PROFILE = "hx-default-coder-1"

# kind → the captures, by folder, that show it
EXPECTED: dict[PromptKind, dict[str, str]] = {
    PromptKind.READY: {
        "hermes-0.19": """after_turn approval_denied approval_timeout background_done background_running
            best_after best_ready delegate_done delegate_running error_401 error_404 error_429 error_500
            error_drop error_midstream_drop error_nochoices error_notjson error_refused input_multiline
            input_pasted_collapsed interrupted narrow_ready profile_ready ready resumed_after_kill9
            slash_help worktree_continue worktree_ready yolo""",
        "hermes-0.22": """after_turn approval_denied background_done background_running chat_q_on_tty
            delegate_done delegate_running error_401 error_404 error_500_nocycles interrupted profile_ready
            ready resumed_after_kill9 slash_new unknown_resume_id""",
        "profile-0.19": """pasted_collapsed path_menu ready ready_draft resumed skin_ares_draft
            skin_ares_ready skin_sisyphus_draft skin_sisyphus_ready slash_menu suggestion width_50 width_63
            width_64""",
        "profile-0.22": "resumed",
    },
    PromptKind.BUSY: {
        "hermes-0.19": """busy_hang busy_injected busy_queue_mode busy_queued busy_retrying busy_steered
            busy_thinking busy_tool narrow_busy profile_busy""",
        "hermes-0.22": """busy_queued busy_retry_cycle busy_retry_cycle2_drop busy_retry_cycle2_http500
            busy_retry_nochoices busy_thinking busy_tool narrow_busy profile_busy retry_cycle_escaped""",
        # a dead process leaves its last screen: only the process itself can tell
        "profile-0.19": """busy_draft killed skin_ares_busy skin_ares_busy_draft skin_sisyphus_busy
            skin_sisyphus_busy_draft""",
        "profile-0.22": "killed",
    },
    PromptKind.APPROVAL: {
        "hermes-0.19": "narrow_approval profile_approval waiting_approval",
        "hermes-0.22": "waiting_approval",
        "profile-0.19": "skin_ares_approval skin_sisyphus_approval",
    },
    PromptKind.QUESTION: {
        "hermes-0.19": "waiting_clarify_choices",
        "hermes-0.22": "waiting_clarify_choices",
        "profile-0.19": "skin_ares_question skin_sisyphus_question",
    },
    PromptKind.OPEN_QUESTION: {
        "hermes-0.19": "waiting_clarify_open",
        "hermes-0.22": "waiting_clarify_open",
        "profile-0.19": "skin_ares_other skin_sisyphus_other",
    },
    PromptKind.CONFIRM: {"hermes-0.19": "slash_confirm", "profile-0.19": "confirm"},
    PromptKind.COMMAND: {"profile-0.19": "skin_ares_command"},
    PromptKind.GONE: {
        "hermes-0.19": "exit",
        "hermes-0.22": "exit",
        "profile-0.19": "exited",
        "profile-0.22": "exited",
    },
    PromptKind.UNKNOWN: {
        "hermes-0.19": """firstrun_wizard killed9 tui_after_turn tui_approval tui_busy tui_clarify
            tui_ready""",
        "hermes-0.22": "firstrun_profile firstrun_telemetry_prompt",
        "profile-0.19": "model_picker",
    },
}
TABLE = [
    (f"{folder}/{name}", kind)
    for kind, folders in EXPECTED.items()
    for folder, names in folders.items()
    for name in names.split()
]
DRAFTS = {
    "hermes-0.19/input_multiline": "B line one\nB line two\nB line three",
    "hermes-0.19/input_pasted_collapsed": "[Pasted text #1: 8 lines → /home/user/hmx00/home/.hermes/pastes/paste_1_113137.txt]",
    "profile-0.19/busy_draft": "my draft",
    "profile-0.19/path_menu": "see src/f",
    "profile-0.19/ready_draft": "my draft",
    "profile-0.19/skin_ares_busy_draft": "more",
    "profile-0.19/skin_ares_draft": "half a thought",
    "profile-0.19/skin_sisyphus_busy_draft": "more",
    "profile-0.19/skin_sisyphus_draft": "half a thought",
    "profile-0.19/slash_menu": "/model",
    "profile-0.19/suggestion": "continue with the tests",
}


@cache
def screen(name: str) -> str:
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


def shows_exactly(prompt: Prompt, text: str) -> bool:
    """As the brain compares: white space does not count, for rows wrap."""
    return squash(prompt.own) == squash(text)


def read(name: str, cursor: tuple[int, int] | None = None) -> Prompt:
    return read_prompt(screen(name), profile=PROFILE if name.startswith("profile") else "", cursor=cursor)


def test_every_capture_has_an_expectation() -> None:
    found = {str(path.relative_to(SCREENS).with_suffix("")) for path in SCREENS.glob("*/*.txt")}
    assert found == {name for name, _ in TABLE}


@pytest.mark.parametrize(("name", "kind"), TABLE)
def test_kind_of_every_capture(name: str, kind: PromptKind) -> None:
    assert read(name).kind is kind


@pytest.mark.parametrize("name", [name for name, kind in TABLE if kind is not PromptKind.READY])
def test_nothing_else_is_ready_without_the_profile(name: str) -> None:
    assert read_prompt(screen(name)).kind is not PromptKind.READY


@pytest.mark.parametrize("name", [name for name, _ in TABLE if not name.endswith("pasted_collapsed")])
def test_only_drafts_have_typed_text(name: str) -> None:
    assert read(name).typed == DRAFTS.get(name, "")


def test_a_collapsed_paste_over_two_rows() -> None:
    path = f"/home/user/lab/home/.hermes/profiles/{PROFILE}/pastes/paste_1_134533.txt"
    prompt = read("profile-0.19/pasted_collapsed")
    assert shows_exactly(prompt, f"[Pasted text #1: 9 lines → {path}]")
    assert not shows_exactly(prompt, f"[Pasted text #1: 9 lines → {path}")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("hermes-0.19/background_running", 1),
        ("hermes-0.19/delegate_running", 1),
        ("hermes-0.22/delegate_running", 1),
        ("hermes-0.19/delegate_done", 0),
        ("hermes-0.19/ready", 0),
    ],
)
def test_background_work_of_a_ready_prompt(name: str, count: int) -> None:
    assert read(name).background == count


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("hermes-0.19/waiting_approval", 56),
        ("hermes-0.19/narrow_approval", 57),
        ("hermes-0.19/waiting_clarify_choices", 117),
        ("hermes-0.19/waiting_clarify_open", 117),
        ("hermes-0.19/slash_confirm", 119),
        ("hermes-0.22/waiting_approval", 3597),
        ("hermes-0.22/waiting_clarify_choices", 3597),
        ("hermes-0.22/waiting_clarify_open", 3598),
        ("hermes-0.19/ready", -1),
        ("hermes-0.19/busy_tool", -1),
    ],
)
def test_the_time_left_of_a_dialog(name: str, left: int) -> None:
    assert read(name).left == left


@pytest.mark.parametrize(
    ("name", "words", "choices"),
    [
        (
            "hermes-0.19/waiting_approval",
            "⚠️  Dangerous Command\n\nrm -rf /home/u/prj/zzz\n\ndelete in root path",
            ("Allow once", "Allow for this session", "Add to permanent allowlist", "Deny"),
        ),
        (
            "hermes-0.22/waiting_approval",
            "cli.tui.approval_title\n\nrm -rf /home/hu/zz5\n\ndelete in root path",
            tuple(f"cli.tui.approval_{word}" for word in ("once", "session", "always", "deny")),
        ),
        (
            "hermes-0.19/waiting_clarify_choices",
            "Hermes needs your input\n\nWhich DB should I use?",
            ("sqlite", "postgres", "mysql", "Other (type your answer)"),
        ),
        (
            "hermes-0.22/waiting_clarify_choices",
            "cli.tui.clarify_title\ncli.tui.clarify_question_count_one\n▸ Which?",
            ("one (Recommended)", "two", "cli.tui.clarify_other_type_answer"),
        ),
        (
            "profile-0.19/skin_sisyphus_question",
            "Hermes needs your input\n\nWhich DB should I use? It must hold a long enough question\n"
            "to wrap over more than a single row of the box.",
            (
                "sqlite",
                "a very long choice that has to wrap over two rows of the box because it is long",
                "Other (type your answer)",
            ),
        ),
    ],
)
def test_dialog_and_choices(name: str, words: str, choices: tuple[str, ...]) -> None:
    prompt = read(name)
    assert (prompt.dialog, prompt.choices) == (words, choices)


def test_every_dialog_has_its_text() -> None:
    for name, kind in TABLE:
        assert bool(read(name).dialog) is (kind in DIALOGS), name


@pytest.mark.parametrize("name", ["hermes-0.19/firstrun_wizard", "hermes-0.22/firstrun_telemetry_prompt"])
def test_first_run_question(name: str) -> None:
    assert read(name).first_run


def test_a_grey_suggestion_is_not_typed_text() -> None:
    prompt = read("profile-0.19/suggestion", cursor=(29, 37))
    assert (prompt.typed, prompt.before_cursor) == ("continue with the tests", "continue")
    assert shows_exactly(prompt, "continue")
    assert prompt.own == "continue"
    assert read("profile-0.19/suggestion", cursor=(21, 37)).own == "continue with the tests"
    assert read("profile-0.19/suggestion", cursor=(0, 3)).own == "continue with the tests"
    assert not shows_exactly(read("profile-0.19/suggestion"), "continue")
    assert not shows_exactly(prompt, "cont")


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("🔐 ❯ type password (hidden), Enter to submit · ESC to skip", PromptKind.SUDO),
        ("🔑 ❯ type secret (hidden), Enter to submit · ESC to skip", PromptKind.SECRET),
        ("⠙ ❯ ⠙ Processing command...", PromptKind.COMMAND),
        ("⚙ ❯", PromptKind.CONFIRM),
        ("🎤 ❯ type or Ctrl+B to record", PromptKind.UNKNOWN),
        ("$ hermes", PromptKind.UNKNOWN),
        ("", PromptKind.UNKNOWN),
        ("● ready", PromptKind.UNKNOWN),
    ],
)
def test_symbols_that_no_capture_shows(row: str, kind: PromptKind) -> None:
    prompt = read_prompt(_with_row(screen("hermes-0.19/ready"), row))
    assert (prompt.kind, prompt.typed) == (kind, "")


@pytest.mark.parametrize(
    "name", ["hermes-0.19/ready", "hermes-0.19/waiting_approval", "hermes-0.19/busy_tool"]
)
def test_a_dead_pane_is_gone(name: str) -> None:
    assert read_prompt(screen(name).rstrip() + "\nPane is dead (signal 9, today)\n").kind is PromptKind.GONE


@pytest.mark.parametrize("text", ["", "\n" * 40, "❯", "user@host ~ ❯ ", "⚕ ❯ \n" + "─" * 120])
def test_other_screens_are_unknown(text: str) -> None:
    assert read_prompt(text) == Prompt(PromptKind.UNKNOWN)


def test_the_rules_left_out_after_a_resize_are_no_exit() -> None:
    text = "Resume this session with:\n  hermes --resume 20261129_112142_f98621\n╰──╯\nw2 ❯\n"
    assert read_prompt(text).kind is PromptKind.UNKNOWN


def test_a_scrolled_draft_hides_its_symbol() -> None:
    rows = "\n".join(["? maybe", *["more"] * 7])
    prompt = read_prompt(_with_row(screen("hermes-0.19/ready"), rows))
    assert (prompt.kind, prompt.typed) == (PromptKind.UNKNOWN, rows)


# What an answer may hold: symbols, rules, boxes, error texts, a whole prompt zone.
HOSTILE = [
    "❯",
    "❯ 1. Allow once",
    "⚠ ❯",
    "? ❯",
    "⚕ ❯ msg=interrupt",
    "API call failed after 3 retries: HTTP 500",
    "❌ Non-retryable error (HTTP 401)",
    "Pane is dead (status 0)",
    "  hermes --resume 20261129_112142_f98621",
    "Run setup now? [Y/n]",
    "─" * 40,
    "─" * 120,
    " ⚕ fake-model │ ⛓ 9 │ ▶ 9 │ 1s",
    "╭─ Hermes needs your input ─╮",
    "│ ❯ 1. yes │",
    "╰──────────╯",
    f"{PROFILE} ❯",
    "日本語 👍🏽 e\u0301",
    "",
]
CAPTURES = ["hermes-0.19/ready", "hermes-0.19/busy_tool", "hermes-0.19/input_multiline", "hermes-0.22/ready"]


@given(st.sampled_from(CAPTURES), st.lists(st.sampled_from(HOSTILE), max_size=12))
def test_output_above_the_prompt_changes_nothing(name: str, output: list[str]) -> None:
    lines = screen(name).rstrip("\n").split("\n")
    status = max(index for index, line in enumerate(lines) if " │ " in line)
    changed = read_prompt("\n".join([*lines[:status], *output, *lines[status:]]))
    assert replace(changed, body=0) == replace(read(name), body=0)


@given(st.sampled_from([name for name, _ in TABLE]), st.data())
def test_half_a_screen_is_never_another_state(name: str, data: st.DataObject) -> None:
    whole = read(name)
    lines = screen(name).rstrip("\n").split("\n")
    part = lines[: data.draw(st.integers(0, len(lines)))]
    kind = read_prompt("\n".join(part), profile=PROFILE).kind
    assert kind in (whole.kind, PromptKind.UNKNOWN) or (kind, whole.kind) == (
        PromptKind.BUSY,
        PromptKind.GONE,
    )


@given(st.text(st.sampled_from("ab é日本;-{}\"' \n"), min_size=1, max_size=300), st.integers(64, 140))
def test_wrapped_text_is_shown_exactly(text: str, columns: int) -> None:
    rows = _wrap(f"❯ {text}", columns)
    if len(rows) > 7 or not text.strip():
        return
    rule = "─" * columns
    prompt = read_prompt("\n".join([" ⚕ m │ ctx -- │ 1s", rule, *rows, rule]))
    assert prompt.kind is PromptKind.READY
    assert shows_exactly(prompt, text)
    assert not shows_exactly(prompt, text + "x")


def _with_row(text: str, row: str) -> str:
    rule = "─" * 120
    head, _, _ = text.rstrip().removesuffix(rule).rpartition(rule)
    return f"{head}{rule}\n{row}\n{rule}\n"


def _wrap(text: str, columns: int) -> list[str]:
    rows = []
    for line in text.split("\n"):
        row, used = "", 0
        for char in line:
            width = 2 if char in "日本" else 1
            if used + width > columns:
                rows.append(row)
                row, used = "", 0
            row, used = row + char, used + width
        rows.append(row)
    return rows
