"""The documents that `--json` prints, field by field: docs/json.md is made from this, and tests compare.

A path names a field: `workers[].name` is `name` in each object of the list `workers`. `object` fields whose
inner fields are not listed are Hermes' or a server's own and may grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VERSION = 1


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `kind` in JSON's words, `|null` where it may be missing."""

    path: str
    kind: str
    what: str


@dataclass(frozen=True, slots=True)
class Schema:
    """What some verbs print. `lines`: one object a line instead of one document."""

    verbs: tuple[str, ...]
    fields: tuple[Field, ...]
    lines: bool = False


def _fields(text: str) -> tuple[Field, ...]:
    rows = (line.split(None, 2) for line in text.splitlines() if line.strip())
    return tuple(Field(path, kind, what) for path, kind, what in rows)


_ENDPOINT = """
{p}endpoint.base_url         string        used verbatim by Hermes
{p}endpoint.model            string        the model asked for
{p}endpoint.context_length   number        tokens
{p}endpoint.kind             string        openai, or rehearsal: scripted answers, no language model
{p}endpoint.key_env          string        the name of the variable that held the key; never the key
{p}endpoint.source           string        where the endpoint came from
"""

_WORKER = (
    """
{p}name                      string        the worker
{p}role                      string        its role
{p}cwd                       string        its working directory
{p}branch                    string        git branch of that directory, "" outside a repository
{p}hermes_profile            string        its folder below Hermes' profiles/
"""
    + _ENDPOINT
    + """
{p}want                      string        run, stopped or paused
{p}generation                number        grows with each start or restart that was asked for
{p}phase                     string        pending, starting, up, stopping, stopped, backoff or held
{p}why                       string        why it is in this phase, "" if there is nothing to say
{p}activity                  string        when up: ready, busy, waiting, background or unknown
{p}word                      string        the one word that `ls` shows
{p}witness                   string        what proved it: event, bell, screen or process
{p}since                     number        when it became so, seconds since the epoch
{p}doing                     string        the running tool, "thinking", or ""
{p}turn                      string        the running turn, "" if none
{p}plugin                    boolean       whether the plugin inside Hermes has reported
{p}waiting                   object|null   the dialog that waits for a person
{p}waiting.kind              string        approval, question, open_question, confirm, sudo or secret
{p}waiting.text              string        what is asked
{p}waiting.choices[]         string        the choices, in their order
{p}waiting.since             number        seconds since the epoch
{p}background                number        children and background tasks that run
{p}last_turn                 object|null   how the newest finished turn ended
{p}last_turn.turn            string        its id
{p}last_turn.outcome         string        ok, failed or interrupted
{p}last_turn.kind            string|null   auth, quota, rate_limit, not_found, server, no_answer, connection or other
{p}last_turn.error           string        the error in the server's or Hermes' words
{p}last_turn.time            number        seconds since the epoch
{p}intake                    string        open, or paused: no message is typed now
{p}intake_why                string        why it is paused
{p}session                   string        Hermes' session id, "" before the first message
{p}attempt                   number        how many processes the worker has had
{p}restarts                  number        how many of them were restarts
{p}pid                       number        of the launch script, 0 if none runs
{p}pane                      string        tmux pane id
{p}operation                 object|null   what the supervisor is in the middle of
{p}operation.kind            string        deliver, interrupt, keys, stop or recover
{p}operation.step            string        its step
{p}operation.since           number        when the step began, seconds since the epoch
{p}operation.deadline        number        when it will be given up, seconds since the epoch
{p}operation.message         string        the message concerned, "" if none
{p}tokens                    object        as the server counted them, since the worker was made
{p}tokens.in                 number        prompt tokens
{p}tokens.out                number        answer tokens
{p}turns                     number        turns that ended
{p}queued                    number        messages that wait
{p}decided[].time            number        seconds since the epoch
{p}decided[].text            string        what was decided, newest last, 8 at most
{p}decided[].reason          string        why
{p}decided[].witness         string        on whose word
"""
)

_SHORT = """
workers[].name               string        the worker
workers[].word               string        the word that `ls` shows
workers[].phase              string        pending, starting, up, stopping, stopped, backoff or held
"""

SCHEMAS = (
    Schema(
        ("ls", "ps", "status"),
        _fields(
            """
schema                       number        the version, 1
fleet                        string        the fleet
time                         number        now, seconds since the epoch
age                          number|null   seconds since the supervisor drew this; null if it never did
supervisor                   object|null   who supervises now
supervisor.pid               number        its process
supervisor.start             number        since when, seconds since the epoch
supervisor.version           string        its version
warning                      string        what to know before believing the picture, "" when it is current
alerts[].text                string        what needs a look
alerts[].since               number        seconds since the epoch
"""
            + _WORKER.replace("{p}", "workers[].")
        ),
    ),
    Schema(
        ("spawn", "scale"),
        _fields(
            """
schema                       number        the version, 1
fleet                        string        the fleet
"""
            + _SHORT
            + """
workers[].why                string        why it is in this phase
workers[].role               string        its role
workers[].cwd                string        its working directory
workers[].branch             string        git branch of that directory
workers[].hermes_profile     string        its folder below Hermes' profiles/
"""
            + _ENDPOINT.replace("{p}", "workers[].")
        ),
    ),
    Schema(
        ("why",),
        _fields(
            "schema number the version, 1\n"
            + _WORKER.replace("{p}", "").strip()
            + """
warning                      string        what to know before believing this
messages[].id                string        a message that waits or is being delivered
messages[].place             string        new or cur
messages[].kind              string        text, slash, interrupt or keys
messages[].created           number        seconds since the epoch
messages[].sender            string        who sent it
messages[].bytes             number        its size
messages[].preview           string        its first 60 characters
next[]                       string        commands that lead on, the most useful first
"""
        ),
    ),
    Schema(
        ("send", "unsend", "interrupt", "keys"),
        _fields(
            """
schema                       number        the version, 1
messages[].id                string        the message
messages[].worker            string        for whom
messages[].kind              string        text, slash, interrupt or keys
messages[].created           number        seconds since the epoch
messages[].sha256            string        of the text as UTF-8
messages[].bytes             number        of the text
messages[].changed[]         string        what was changed before it was queued
messages[].place             string        new (queued), cur (being delivered), done or failed
messages[].receipt           object|null   the proof of delivery: method, sha256, session, turn, time, changed
messages[].error             string|null   why it failed
"""
        ),
    ),
    Schema(
        ("ask",),
        _fields(
            """
schema                       number        the version, 1
text                         string        the answer
worker                       string        who answered
message                      string        id of the message
turn                         string        the turn that gave the answer; of several, the last
session                      string        Hermes' session id
seconds                      number        from sending to the end of the turn
tokens_in                    number        prompt tokens of its turns
tokens_out                   number        answer tokens of its turns
tools[]                      string        tools called, in order
delegations                  number        how often work was delegated
truncated                    boolean       whether the answer was longer than what is kept (4 MiB)
receipt                      object|null   the proof of delivery: method, sha256, session, turn, time, changed
produced[]                   string        the files of --produces
"""
        ),
    ),
    Schema(("wait",), _fields("schema number the version, 1\n" + _SHORT.strip())),
    Schema(
        ("wait --message",),
        _fields(
            """
schema                       number        the version, 1
message                      string        the message
worker                       string        for whom
receipt                      object|null   the proof of delivery
"""
        ),
    ),
    Schema(
        ("start", "restart", "stop"),
        _fields(
            "schema number the version, 1\n"
            + _SHORT.strip()
            + """
workers[].want               string        run, stopped or paused
workers[].why                string        why it is in this phase
workers[].attempt            number        how many processes it has had
workers[].restarts           number        how many of them were restarts
workers[].session            string        Hermes' session id
"""
        ),
    ),
    Schema(
        ("rm",),
        _fields(
            """
schema                       number        the version, 1
removed[].name               string        who is gone
removed[].archive            string|null   where what it learned is; null when purged
removed[].cwd                string        its working directory, as it was
"""
        ),
    ),
    Schema(
        ("peek",),
        _fields(
            """
schema                       number        the version, 1
worker                       string        whose screen
lines[]                      string        its rows, blank ones at the end left out
"""
        ),
    ),
    Schema(
        ("endpoint show", "endpoint set", "endpoint test"),
        _fields(
            """
schema                       number        the version, 1
base_url                     string        "" for the rehearsal model, which gets its address at spawn
model                        string        "" = the server's only one
context_length               number        tokens, 0 = as the server says
kind                         string        openai or rehearsal
key_env                      string        name of the key's variable, "" = no key
source                       string        who says so
engine                       string        what the server says it is, "" if it was not asked
saved                        string        the file it is saved in, "" if none
notes[]                      string        what was repaired or assumed
"""
        ),
    ),
    Schema(
        ("logs",),
        _fields(
            """
v                            number        the version, 1
time                         number        seconds since the epoch
worker                       string        the worker
what                         string        transition, action, alert or supervisor
attempt                      number        the worker's attempt at that time
text                         string        what was done
reason                       string        why
cause                        string        what it was an answer to
"""
        ),
        lines=True,
    ),
    Schema(
        ("events",),
        _fields(
            """
v                            number        the version, 1
t                            number        seconds since the epoch, by Hermes' clock
pid                          number        of Hermes
attempt                      number        which process of the worker
event                        string        Hermes' name of the hook, or plugin_loaded
session                      string        Hermes' session id
platform                     string        cli, or subagent for a child
turn                         string        the turn, "" between turns; other fields depend on the event
"""
        ),
        lines=True,
    ),
)


def schema_of(verb: str) -> Schema:
    """Return the schema of a verb; raises KeyError."""
    for schema in SCHEMAS:
        if verb in schema.verbs:
            return schema
    raise KeyError(verb)


def undocumented(verb: str, document: Any) -> list[str]:
    """Return the paths in a document that the verb's schema does not name."""
    known = {field.path for field in schema_of(verb).fields}
    return sorted(path for path in set(_paths(document, "")) if not _covered(path, known))


def _covered(path: str, known: set[str]) -> bool:
    if path in known or any(each.startswith((f"{path}.", f"{path}[")) for each in known):
        return True
    parent = path.rpartition(".")[0]
    return parent in known and not any(each.startswith(f"{parent}.") for each in known)


def _paths(value: Any, path: str) -> list[str]:
    if isinstance(value, dict):
        inner = [_paths(each, f"{path}.{key}" if path else key) for key, each in value.items()]
        return [*([path] if path else []), *(found for each in inner for found in each)]
    if isinstance(value, list):
        return [found for each in value for found in _paths(each, f"{path}[]")] or [f"{path}[]"]
    return [path]
