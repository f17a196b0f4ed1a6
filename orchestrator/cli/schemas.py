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
{p}endpoint.name             string        the name it is saved under, "" if it was given in full or found elsewhere
{p}endpoint.given[]          string        endpoint, model, key: what was named for this worker alone
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
{p}fallback[]                string        models that Hermes switches to when the endpoint gives no answer
{p}model                     string        the model that was asked last, "" before the first call
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
{p}setting_up                boolean       whether its setup command runs, before Hermes starts
{p}waiting                   object|null   the dialog in its pane that waits for a person
{p}waiting.id                string        names it to approve, deny and answer: W#N, never given twice
{p}waiting.kind              string        approval, question, open_question, confirm, sudo or secret
{p}waiting.text              string        what is asked
{p}waiting.choices[]         string        the choices, in their order
{p}waiting.since             number        seconds since the epoch
{p}waiting.deadline          number|null   when Hermes gives it up; null while that is not known
{p}waiting.in_pane           boolean       true
{p}dialogs[]                 object        all that are open, of the same fields; the first is in the pane
{p}timed_out                 number        dialogs that nobody answered in time
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

_FAREWELL = """
{p}worktree                  object|null   what became of its worktree; null if it had none
{p}worktree.path             string        the folder
{p}worktree.branch           string        its branch
{p}worktree.kept             boolean       whether it is still there
{p}worktree.why              string        why it was kept
{p}worktree.recovery         string        the ref that has everything, "" if none could be made
{p}worktree.restore          string        the command that brings it back
{p}worktree.ignored[]        string        ignored files that were in it
{p}worktree.left_out[]       string        what of a kept worktree is not in the ref
{p}worktree.branch_deleted   boolean       whether the branch is gone too, being merged
"""

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
        ("inbox",),
        _fields(
            """
schema                       number        the version, 1
fleet                        string        the fleet
warning                      string        what to know before believing this, "" when it is current
dialogs[].worker             string        who asks
dialogs[].id                 string        names the dialog to approve, deny and answer
dialogs[].kind               string        approval, question, open_question, confirm, sudo or secret
dialogs[].text               string        what is asked
dialogs[].choices[]          string        the choices, in their order
dialogs[].since              number        seconds since the epoch
dialogs[].deadline           number|null   when Hermes gives it up; null while that is not known
dialogs[].seconds_left       number|null   until then
dialogs[].in_pane            boolean       false for one that waits behind another
messages[].worker            string        for whom
messages[].id                string        a message that waits or is being delivered
messages[].place             string        new or cur
messages[].kind              string        text, slash, interrupt, keys or answer
messages[].created           number        seconds since the epoch
messages[].sender            string        who sent it
messages[].bytes             number        its size
messages[].preview           string        its first 60 characters
messages[].waits_for         string        why it is not delivered yet
"""
        ),
    ),
    Schema(
        ("approve", "deny", "answer"),
        _fields(
            """
schema                       number        the version, 1
id                           string        the dialog
worker                       string        who asked
kind                         string        approval, question, open_question or confirm
answer                       string        once, session, always, deny, the choice or the text
message                      string        id of the message that carried the answer
place                        string        done = Hermes has it; new = queued (--no-wait)
reason                       string        id of the message with the reason of a denial, "" if none
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
        ("role ls",),
        _fields(
            """
schema                       number        the version, 1
roles[].name                 string        the role
roles[].source               string        packaged, own, or "own persona": your SOUL.md with a packaged role.yaml
roles[].description          string        one line, "" for a role that cannot be used
roles[].trouble              string        what is wrong with it, "" if nothing
roles[].folder               string        where its role.yaml lies
"""
        ),
    ),
    Schema(
        ("role show",),
        _fields(
            """
schema                       number        the version, 1
name                         string        the role
source                       string        packaged, own, or "own persona"
settings[].field             string        a field of role.yaml, such as approvals.timeout
settings[].value             object        what holds
settings[].origin            string        FILE:LINE, or default
soul                         string        the persona, whole
soul_file                    string        where it lies
"""
        ),
    ),
    Schema(
        ("role new",),
        _fields(
            """
schema                       number        the version, 1
name                         string        the role
folder                       string        where its role.yaml and SOUL.md are now
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
removed[].profile            string        of your own Hermes profile, if it worked on one: how it is left
"""
            + _FAREWELL.replace("{p}", "removed[].")
        ),
    ),
    Schema(
        ("worktree rm",),
        _fields(
            """
schema                       number        the version, 1
removed[].name               string        the worker
"""
            + _FAREWELL.replace("{p}", "removed[].")
        ),
    ),
    Schema(
        ("worktree ls",),
        _fields(
            """
schema                       number        the version, 1
fleet                        string        the fleet
worktrees[].worker           string        whose it is, or was
worktrees[].owned            boolean       whether that worker is in the fleet
worktrees[].state            string        made, or making: left by a spawn that was killed
worktrees[].there            boolean       whether its folder exists
worktrees[].path             string        its folder
worktrees[].repo             string        the checkout that it was made from
worktrees[].branch           string        its branch
worktrees[].base             string        the commit that it began at
worktrees[].head             string|null   the commit that is checked out; null where nothing is known
worktrees[].detached         boolean|null  whether the head is on no branch
worktrees[].ahead            number|null   commits since the base
worktrees[].unmerged         number|null   of those, the ones that no branch of the user has
worktrees[].staged           number|null   staged files
worktrees[].changed          number|null   changed files
worktrees[].untracked        number|null   untracked files
worktrees[].conflicts        number|null   files in conflict
worktrees[].under_way[]      string        a rebase, a merge, …
worktrees[].stashes[]        string        stashes made on its branch
worktrees[].nested[]         string        repositories inside it
worktrees[].size             number|null   bytes on disk
worktrees[].problem          string        why nothing is known, "" if there is no trouble
"""
        ),
    ),
    Schema(
        ("worktree ls --recovery",),
        _fields(
            """
schema                       number        the version, 1
recoveries[].repo            string        the checkout that has it
recoveries[].ref             string        for `worktree restore`
"""
        ),
    ),
    Schema(
        ("worktree path",),
        _fields(
            """
schema                       number        the version, 1
name                         string        the worker
path                         string        the folder of its worktree
branch                       string        its branch
"""
        ),
    ),
    Schema(
        ("worktree restore",),
        _fields(
            """
schema                       number        the version, 1
ref                          string        the recovery ref
path                         string        where the worktree is again
branch                       string        its branch, "" = the head is detached
head                         string        the commit that is checked out
notes[]                      string        what is not as it was
"""
        ),
    ),
    Schema(
        ("diff",),
        _fields(
            """
schema                       number        the version, 1
name                         string        the worker
base                         string        the commit that it is compared with
files[].path                 string        a file that differs
files[].added                number|null   lines added; null for a binary file
files[].removed              number|null   lines removed
patch                        string        the whole patch
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
        ("transcript",),
        _fields(
            """
schema                       number        the version, 1
fleet                        string        the fleet
worker                       string        whose conversation
archive                      string|null   the folder that it was read from, of a worker that was removed
turns[].number               number        counted from the oldest turn on record
turns[].turn                 string        Hermes' id of the turn
turns[].session              string        Hermes' session id
turns[].attempt              number        which process of the worker
turns[].background           boolean       whether it is a /background one
turns[].began                number        seconds since the epoch
turns[].ended                number|null   seconds since the epoch; null while it runs, and where nothing said so
turns[].time                 number        `ended`, or `began` where that is null
turns[].state                string        ok, failed, interrupted, running, cut (its process died) or unknown
turns[].error                string        why it failed
turns[].message              string        id of the message that began it, "" = typed, or no longer known
turns[].sender               string        who sent that message; "hermes" = Hermes began the turn itself
turns[].user                 string        what was asked
turns[].user_cut             boolean       whether only the beginning of it is there
turns[].answer               string        what was answered, "" if nothing
turns[].answer_cut           boolean       whether only the beginning of it is there
turns[].model                string        the model of its last call
turns[].calls                number        calls of the model
turns[].tokens.in            number        prompt tokens
turns[].tokens.out           number        answer tokens
turns[].tools[]              string        tools called, in order
turns[].steps[].kind         string        tool, approval, question, child or error
turns[].steps[].time         number        seconds since the epoch
turns[].steps[].text         string        the tool, the command, the question, the goal or the error
turns[].steps[].detail       string        with what, why, or which try
turns[].steps[].choices[]    string        of a question
turns[].steps[].outcome      string        ok, error, the choice, how a child ended; "" while it is open
turns[].steps[].result       string        what came back, one line of at most 200 characters
turns[].steps[].seconds      number|null   how long it took
turns[].steps_left_out       number        steps beyond the first 500
"""
        ),
    ),
    Schema(
        ("endpoint show", "endpoint set", "endpoint use", "endpoint test"),
        _fields(
            """
schema                       number        the version, 1
base_url                     string        "" for the rehearsal model, which gets its address at spawn
model                        string        "" = the server's only one
context_length               number        tokens, 0 = as the server says
kind                         string        openai or rehearsal
key_env                      string        name of the key's variable, "" = no key
source                       string        who says so
name                         string        the name it is saved under, "" if it was given in full or found elsewhere
given[]                      string        endpoint, model, key: what flags or variables name
engine                       string        what the server says it is, "" if it was not asked
default                      boolean       whether new workers get it when nothing else is named
fallback[]                   string        models of the same server that Hermes switches to
from.url                     string        who says the URL
from.model                   string        who says the model
from.context                 string        who says the context length
from.key                     string        who says the key's name, "" without a key
saved                        string        the file that holds the saved endpoints, "" if none
notes[]                      string        what was repaired or assumed
roll.rolled[]                string        with --roll: workers that are on it
roll.pending[]               string        workers that follow when they are idle, or are started
roll.kept[].name             string        a worker that keeps its own
roll.kept[].why              string        why
"""
        ),
    ),
    Schema(
        ("doctor",),
        _fields(
            """
schema                       number        the version, 1
fleet                        string        the fleet
ok                           boolean       whether no check failed
checks[].name                string        what was looked at
checks[].state               string        ok, warn, fail or skipped
checks[].seen                string        what was seen, a line
checks[].next                string        what to type or change next, "" where nothing is wrong
checks[].seconds             number        how long it took
"""
        ),
    ),
    Schema(
        ("endpoint ls",),
        _fields(
            """
schema                       number        the version, 1
endpoints[].name             string        what it is saved under
endpoints[].default          boolean       whether new workers get it when nothing else is named
endpoints[].base_url         string        "" for the rehearsal model
endpoints[].model            string        the model
endpoints[].context_length   number        tokens
endpoints[].kind             string        openai or rehearsal
endpoints[].key_env          string        name of the key's variable, "" = no key
endpoints[].source           string        where it is saved
endpoints[].given[]          string        always empty
endpoints[].fallback[]       string        models of the same server that Hermes switches to
endpoints[].answers          boolean|null  with --test: whether it answers; null = it was not asked
endpoints[].said             string        its engine, or what is wrong
"""
        ),
    ),
    Schema(
        ("endpoint rm",),
        _fields(
            """
schema                       number        the version, 1
removed                      string        the name that is free now
default                      boolean       whether it was the default
"""
        ),
    ),
    Schema(
        ("gc",),
        _fields(
            """
schema                       number        the version, 1
fleet                        string        the fleet
delete                       boolean       whether it was asked to delete
older_than                   number        seconds; at least 3600 count
items[].kind                 string        archive, attempt, cache, learned, message, profile, rotated, scratch, snapshot, text or worker
items[].path                 string        the file or folder
items[].bytes                number        its size
items[].age                  number        seconds since it was written last
items[].why                  string        why it is safe to delete
items[].deleted              boolean       whether it was deleted now
items[].error                string        why it could not be
kept[].path                  string        what stays although it may be nobody's
kept[].bytes                 number        its size
kept[].why                   string        why it stays
bytes                        number        of all items
"""
        ),
    ),
    Schema(
        ("logs --previous",),
        _fields(
            """
schema                       number        the version, 1
worker                       string        the worker
attempt                      number        the newest attempt that ended
newest                       number        its newest attempt, which may run
how                          string        how it ended, in words
code                         number|null   its exit code
signal                       number|null   the signal that ended it
began                        number|null   seconds since the epoch
ended                        number|null   seconds since the epoch
screen[]                     string        the rows of its last screen; null when none was kept
screen_file                  string        the file of it, "" if there is none
events[]                     object        its last events, as `events` has them
journal[]                    object        its last journal lines, as `logs` has them
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
