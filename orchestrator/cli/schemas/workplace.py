"""What the verbs about roles, worktrees, screens and conversations print."""

from __future__ import annotations

from orchestrator.cli.schemas.shape import Schema, fields

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
{p}worktree.left[]           string        files that appeared while it was removed, and so are still there
{p}worktree.aside            string        the folder that they are in, "" if there are none
"""

WORKPLACE = (
    Schema(
        ("service status",),
        fields(
            """
schema                       number        the version, 1
unit                         string        the unit's name
path                         string        where its file belongs
installed                    boolean       whether the file is there
ours                         boolean       whether hermux made it
enabled                      string        systemd's word, "" where it cannot be asked
active                       string        the same
linger                       boolean       whether the user's units run without a login
"""
        ),
    ),
    Schema(
        ("up",),
        fields(
            """
schema                       number        the version, 1
fleet                        string        the fleet
dry_run                      boolean       whether this only would be done
steps[].name                 string        the worker, or `groups`
steps[].action               string        created, changed, started, stopped or restored; with --dry-run create, change, start, stop
steps[].what[]               string        what is different, in words; never a variable's value
"""
        ),
    ),
    Schema(
        ("role ls",),
        fields(
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
        fields(
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
        fields(
            """
schema                       number        the version, 1
name                         string        the role
folder                       string        where its role.yaml and SOUL.md are now
"""
        ),
    ),
    Schema(
        ("rm",),
        fields(
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
        fields(
            """
schema                       number        the version, 1
removed[].name               string        the worker
"""
            + _FAREWELL.replace("{p}", "removed[].")
        ),
    ),
    Schema(
        ("worktree ls",),
        fields(
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
        fields(
            """
schema                       number        the version, 1
recoveries[].repo            string        the checkout that has it
recoveries[].ref             string        for `worktree restore`
"""
        ),
    ),
    Schema(
        ("worktree path",),
        fields(
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
        fields(
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
        fields(
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
        fields(
            """
schema                       number        the version, 1
worker                       string        whose screen
lines[]                      string        its rows, blank ones at the end left out
"""
        ),
    ),
    Schema(
        ("transcript",),
        fields(
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
)
