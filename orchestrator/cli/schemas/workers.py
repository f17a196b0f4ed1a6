"""What the verbs about workers, messages and dialogs print."""

from __future__ import annotations

from orchestrator.cli.schemas.shape import Schema, fields

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
{p}draining                  boolean       whether it stops after what it is doing
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
{p}last_turn.kind            string|null   auth, quota, rate_limit, not_found, context, server, no_answer, connection or other
{p}last_turn.error           string        the error in the server's or Hermes' words
{p}last_turn.time            number        seconds since the epoch
{p}stalled                   object|null   that its turn makes no progress
{p}stalled.since             number        when that was reported, seconds since the epoch
{p}stalled.seconds           number        without progress, as far as somebody watched
{p}stalled.done              string        reported, interrupted or restarted
{p}intake                    string        open, or paused: no message is typed now
{p}intake_why                string        why it is paused
{p}session                   string        Hermes' session id, "" before the first message
{p}attempt                   number        how many processes the worker has had
{p}restarts                  number        how many of them were restarts
{p}ended_by                  string        how the last one ended, "" while none has
{p}anew                      object|null   that it goes on in a new conversation, until a person acts
{p}anew.why                  string        why
{p}anew.time                 number        since when, seconds since the epoch
{p}anew.attempt              number        the attempt that began it, 0 = it is still to come
{p}anew.told                 boolean       it was told what it was doing
{p}anew.worked               boolean       a turn of it ended well
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

WORKERS = (
    Schema(
        ("ls", "ps", "status"),
        fields(
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
        fields(
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
        fields(
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
        fields(
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
        fields(
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
        fields(
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
        fields(
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
    Schema(("wait",), fields("schema number the version, 1\n" + _SHORT.strip())),
    Schema(
        ("wait --message",),
        fields(
            """
schema                       number        the version, 1
message                      string        the message
worker                       string        for whom
receipt                      object|null   the proof of delivery
"""
        ),
    ),
    Schema(
        ("start", "restart", "stop", "drain", "pause"),
        fields(
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
)
