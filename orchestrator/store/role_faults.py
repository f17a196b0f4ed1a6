"""What is wrong with a `role.yaml`, in words that say what to write instead."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from orchestrator.store.yamlfile import Located, Place, dotted

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


def faults_of(found: Located, error: ValidationError) -> list[tuple[int, str]]:
    """Return each fault with its line, but for fields whose content is not known."""
    return [
        (found.line(detail["loc"]), f"{found.at(detail['loc'])}: {_what(detail)}")
        for detail in error.errors(include_url=False)
        if not any(detail["loc"][: len(place)] == place for place in found.bad)
    ]


_WANTED = {
    "bool_type": "true or false",
    "list_type": "a list, such as [a, b]",
    "string_type": "text",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
}


def _what(detail: Any) -> str:
    """Return one of pydantic's faults in our words."""
    place, kind, value = detail["loc"], detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return _misplaced(place)
    if kind == "missing":
        return "missing"
    if kind == "value_error":
        return str(detail["msg"]).removeprefix("Value error, ")
    said = _WANTED.get(kind) or str(detail["msg"]).removeprefix("Input should be ").removeprefix("a valid ")
    if kind == "string_pattern_mismatch":
        said = "text without blanks, commas or line breaks where none belong"
    if kind == "model_type":
        said = f"fields of its own ({', '.join(known_fields(place))})"
    near = _near_word(detail)
    return (
        f"must be {said}, not {value!r:.60}" if value is not None else f"must be {said}, but is empty"
    ) + near


def _near_word(detail: Any) -> str:
    """Return the choice that was probably meant, "" if none was."""
    value = detail["input"]
    if detail["type"] == "bool_type" and isinstance(value, str):
        word = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(value.lower(), "")
        return f"; write {word}" if word else ""
    if detail["type"] == "literal_error" and isinstance(value, str):
        choices = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
        near = get_close_matches(value.lower(), choices, n=1, cutoff=0.5)
        return f"; did you mean {near[0]!r}?" if near else ""
    if detail["type"] == "string_type" and isinstance(value, int | float):
        return "; put it in quotes"
    return ""


def _misplaced(place: Place) -> str:
    """Return what to do with a field that is not known here: the nearest right word, or where it belongs."""
    word = str(place[-1])
    home, dot, inner = word.partition(".")
    if dot and len(place) == 1 and inner in known_fields((home,)):
        return f"unknown field; {inner!r} stands below {home!r}: {home}: {{{inner}: …}}"
    near = get_close_matches(word, known_fields(place[:-1]), n=1, cutoff=0.5)
    if near:
        return f"unknown field; did you mean {near[0]!r}?"
    homes = [
        dotted((*home, word)) for home in ((), *_inner()) if word in known_fields(home) and home != place[:-1]
    ]
    if homes:
        return f"unknown field here; did you mean {homes[0]!r}?"
    return f"unknown field; known here: {', '.join(known_fields(place[:-1]))}"


def _inner() -> list[Place]:
    from orchestrator.store.role_schema import RoleFile

    return [(name,) for name in RoleFile.model_fields if known_fields((name,))]


def known_fields(place: Place) -> list[str]:
    """Return the names of the fields at a place, [] where there are none."""
    from orchestrator.store import role_schema

    model: type[BaseModel] = role_schema.RoleFile
    inner: dict[Any, type[BaseModel]] = {
        "approvals": role_schema.Approvals,
        "checkpoints": role_schema.Checkpoints,
        "skills": role_schema.Skills,
        "worktree": role_schema.WorktreeFiles,
        "restart": role_schema.Restart,
    }
    if place[:1] == ("fallback",) and len(place) == 2:
        model = role_schema.Fallback
    elif place:
        if len(place) > 1 or place[0] not in inner:
            return []
        model = inner[place[0]]
    return [field.alias or name for name, field in model.model_fields.items()]
