"""Names of keys, and keys of another kind: those that must not be shown."""

from __future__ import annotations

import pytest

from orchestrator.errors import UsageError
from orchestrator.fleet.keys import check_keys
from orchestrator.store.redact import SHOWN, redact

KEY = "sk-canary-0123456789"


@pytest.mark.parametrize("keys", [["Enter"], ["C-c"], ["y", "1", "é"], ["C-M-x", "S-Up", "f5"], ["-"]])
def test_keys_that_are(keys: list[str]) -> None:
    check_keys(keys)


@pytest.mark.parametrize(
    ("key", "meant"), [("Entre", "Enter"), ("NoSuchKey", ""), ("C-", ""), ("esc", "Esc")]
)
def test_keys_that_are_not(key: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_keys([key])
    assert meant in caught.value.hint


def test_a_key_is_taken_out_also_where_a_screen_wraps_it() -> None:
    assert redact(f"a {KEY} b", [KEY]) == f"a {SHOWN} b"
    assert redact(f"│ a {KEY[:9]}   \n│ {KEY[9:]} b", [KEY]) == f"│ a {SHOWN} b"
    assert redact("sk-canary is no key", [KEY]) == "sk-canary is no key"
