"""What the verbs about endpoints, the machine and the records print."""

from __future__ import annotations

from orchestrator.cli.schemas.shape import Schema, fields

SURROUNDINGS = (
    Schema(
        ("endpoint show", "endpoint set", "endpoint use", "endpoint test"),
        fields(
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
        fields(
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
        ("selftest",),
        fields(
            """
schema                       number        the version, 1
ok                           boolean       whether no fault failed
seed                         number        what fixed the chances
workers                      number        the size of the fleet
faults[].fault               string        its name
faults[].worker              string        the worker that was hit
faults[].verdict             string        survived, failed or not provoked
faults[].noticed             number|null   seconds until hermux had seen it; null = nothing is to be noticed
faults[].recovered           number|null   seconds until all was as before; null = it was not
faults[].lost[]              number        numbers of messages that are in no conversation
faults[].doubled[]           number        numbers of messages that are in one twice
faults[].left[]              string        what was left behind: processes, panes, sockets, locks, worktrees
faults[].foreign[]           string        what of somebody else's is not as it was
faults[].why                 string        what was wrong, or why it could not be provoked
"""
        ),
    ),
    Schema(
        ("endpoint ls",),
        fields(
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
        fields(
            """
schema                       number        the version, 1
removed                      string        the name that is free now
default                      boolean       whether it was the default
"""
        ),
    ),
    Schema(
        ("gc",),
        fields(
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
        fields(
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
        fields(
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
        fields(
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
