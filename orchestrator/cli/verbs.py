"""Every verb, the module that has it, and what it does in a line.

Only the module of the verb that was typed is imported: `hermux ls` reads nothing of the others.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: `orchestrator.cli.<module>` has a function of its name (`-` becomes `_`)."""

    name: str
    module: str
    help: str
    function: str = ""
    alias_of: str = ""

    @property
    def target(self) -> str:
        return self.function or self.name.replace("-", "_")


VERBS = (
    Verb("spawn", "spawn", "add N workers and wait until they are ready"),
    Verb("scale", "spawn", "make the fleet, or each named role, exactly N workers"),
    Verb("up", "up", "make the fleet what a fleet.yaml declares"),
    Verb("down", "up", "stop the workers of a fleet.yaml; everything is kept"),
    Verb("ls", "ls", "show the workers and their state"),
    Verb("attach", "screen", "put this terminal on a worker's screen"),
    Verb("peek", "screen", "print a worker's screen"),
    Verb("transcript", "transcript", "print a worker's conversation, turn by turn"),
    Verb("send", "send", "queue a message for workers"),
    Verb("unsend", "send", "take back a message that still waits"),
    Verb("ask", "ask", "send a message, wait for the answer and print it"),
    Verb("wait", "wait", "wait until workers have nothing left to do"),
    Verb("interrupt", "send", "stop the running turn"),
    Verb("keys", "send", "have keys typed into a worker's terminal"),
    Verb("inbox", "people", "show what waits for a person, and undelivered messages"),
    Verb("approve", "people", "allow what a worker asks for"),
    Verb("deny", "people", "refuse what a worker asks for"),
    Verb("answer", "people", "answer a worker's question"),
    Verb("why", "why", "say why a worker is in its state and what to type next"),
    Verb("logs", "logs", "what was decided and done for a worker"),
    Verb("events", "logs", "what Hermes reported, event by event"),
    Verb("start", "life", "start workers, or lift a hold"),
    Verb("restart", "life", "end workers and start them again, conversation kept"),
    Verb("stop", "life", "end workers; everything they learned stays"),
    Verb("drain", "life", "end workers after what they are doing; nothing new is begun"),
    Verb("pause", "life", "end workers to free their memory; a cut turn goes on at the next start"),
    Verb("rm", "life", "forget stopped workers; what they learned is archived"),
    Verb("gc", "gc", "show what is left on disk, and delete it when told to"),
    Verb("worktree", "worktree", "list, remove or bring back workers' git worktrees", function="app"),
    Verb("diff", "worktree", "what a worker changed since its worktree began"),
    Verb("role", "role", "list, show or begin a role: the template of workers", function="app"),
    Verb(
        "endpoint", "endpoint", "show, save, list or test model servers; change the fleet's", function="app"
    ),
    Verb("doctor", "doctor", "check tmux, Hermes, the endpoint and this machine; say what to type next"),
    Verb("selftest", "selftest", "deal faults to a private fleet and show that it survives them"),
    Verb("mock-endpoint", "services", "serve the rehearsal model: scripted answers, no language model"),
    Verb("supervise", "services", "run the supervisor here, in the foreground"),
    Verb("service", "service", "the supervisor as a systemd user unit", function="app"),
    Verb("ps", "ls", "same as ls", function="ls", alias_of="ls"),
    Verb("status", "ls", "same as ls", function="ls", alias_of="ls"),
    Verb("a", "screen", "same as attach", function="attach", alias_of="attach"),
)

BY_NAME = {verb.name: verb for verb in VERBS}
