"""`.hermux.yaml` at the top of a repository: what its worktrees need beside what git checks out.

worktree:
  copy: [.env, "config/*.local"]
  link: [node_modules]
  setup: npm ci
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.fleet.role import WorktreeFiles
from orchestrator.store.yamlfile import Located, read

NAME = ".hermux.yaml"
FIELDS = ("worktree",)


def load_repofile(top: Path) -> WorktreeFiles:
    """Return what the file asks for; nothing where there is no file.

    Raises UsageError that names every fault as "file:line: field: what".
    """
    path = top / NAME
    if not path.is_file():
        return WorktreeFiles()
    found = read(path)
    faults = [*found.faults, *_unknown(found)]
    files = _files(found, faults)
    if faults or files is None:
        raise UsageError(
            "\n".join(dict.fromkeys(text for _, text in sorted(faults))),
            hint="the fields: worktree: copy, link (lists of paths and globs), setup (a command)",
        )
    return files


def _unknown(found: Located) -> list[tuple[int, str]]:
    """Return a fault for each field at the top that is none of ours."""
    if found.data is None and not found.faults:
        return []
    if not isinstance(found.data, dict):
        return [(1, f"{found.path}:1: not a list of fields; write for example `worktree: {{copy: [.env]}}`")]
    told = []
    for name in found.data:
        if name not in FIELDS:
            near = get_close_matches(str(name), FIELDS, n=1, cutoff=0.5) or get_close_matches(
                str(name), ("copy", "link", "setup"), n=1, cutoff=0.7
            )
            word = near[0] if near and near[0] in FIELDS else f"worktree.{near[0]}" if near else ""
            what = f"unknown field; did you mean {word!r}?" if word else "unknown field; known here: worktree"
            told.append((found.line((name,)), f"{found.at((name,))}: {what}"))
    return told


def _files(found: Located, faults: list[tuple[int, str]]) -> WorktreeFiles | None:
    from pydantic import ValidationError

    from orchestrator.store.role_faults import faults_of
    from orchestrator.store.role_schema import RepositoryFile

    data = found.data if isinstance(found.data, dict) else {}
    try:
        checked = RepositoryFile.model_validate({name: data[name] for name in FIELDS if name in data})
    except ValidationError as error:
        faults.extend(faults_of(found, error))
        return None
    tree = checked.worktree
    return WorktreeFiles(tuple(tree.copy_), tuple(tree.link), tree.setup)
