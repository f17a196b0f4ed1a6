"""What is wrong with a `role.yaml` or a `fleet.yaml`, in words that say what to write instead."""

from __future__ import annotations

import re
from difflib import get_close_matches
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args

from orchestrator.store.yamlfile import Located, Place, dotted

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


def faults_of(
    found: Located, error: ValidationError, model: type[BaseModel] | None = None
) -> list[tuple[int, str]]:
    """Return each fault with its line, but for fields whose content is not known.

    `model` is what the file was read as; None = `RoleFile`.
    """
    return [
        (found.line(detail["loc"]), f"{found.at(detail['loc'])}: {_what(detail, model)}")
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


def _what(detail: Any, model: type[BaseModel] | None) -> str:
    """Return one of pydantic's faults in our words."""
    place, kind, value = detail["loc"], detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return _misplaced(place, model)
    if kind == "missing":
        return "missing"
    if kind == "value_error":
        return str(detail["msg"]).removeprefix("Value error, ")
    said = _WANTED.get(kind) or str(detail["msg"]).removeprefix("Input should be ").removeprefix("a valid ")
    if kind == "string_pattern_mismatch":
        said = "text without blanks, commas or line breaks where none belong"
    if kind == "model_type":
        said = f"fields of its own ({', '.join(known_fields(place, model))})"
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


def _misplaced(place: Place, model: type[BaseModel] | None) -> str:
    """Return what to do with a field that is not known here: the nearest right word, or where it belongs."""
    word, known = str(place[-1]), known_fields(place[:-1], model)
    home, dot, inner = word.partition(".")
    if dot and len(place) == 1 and inner in known_fields((home,), model):
        return f"unknown field; {inner!r} stands below {home!r}: {home}: {{{inner}: …}}"
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f"unknown field; did you mean {near[0]!r}?"
    for home_of in ((), *((name,) for name in known_fields((), model))):
        if word in known_fields(home_of, model) and home_of != place[:-1]:
            return f"unknown field here; did you mean {dotted((*home_of, word))!r}?"
    return f"unknown field; known here: {', '.join(known)}"


def known_fields(place: Place, model: type[BaseModel] | None = None) -> list[str]:
    """Return the names of the fields at a place, [] where there are none."""
    from orchestrator.store.role_schema import RoleFile

    kind: Any = model or RoleFile
    for step in place:
        kind = _inside(kind, step)
    found = _model(kind)
    return [field.alias or name for name, field in found.model_fields.items()] if found else []


def _inside(kind: Any, step: str | int) -> Any:
    """Return the type of a field, or of an item of a list or mapping; None where there is none."""
    found = _model(kind)
    if found is None:
        inner = get_args(kind)
        return inner[-1] if inner else None
    fields = {field.alias or name: field.annotation for name, field in found.model_fields.items()}
    return fields.get(str(step))


def _model(kind: Any) -> type[BaseModel] | None:
    """Return the fields that a type stands for: a model, or one that may be left empty."""
    choices = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return next((each for each in choices if hasattr(each, "model_fields")), None)
