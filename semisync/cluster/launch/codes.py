"""How a launcher ends, and its exit codes, besides those of every command.

128 + n   stopped by signal n: 130 Ctrl-C, 143 SIGTERM
"""

from typing import NamedTuple

from semisync.common import exit_codes

DONE = exit_codes.DONE
COMMAND_FAILED = 10
JOB_FAILED = 11
MISSING = 12
PLACE_LOST = 13

MEANINGS = {
    COMMAND_FAILED: "the command failed, and no restart was left",
    JOB_FAILED: "the job ended elsewhere: the chief or a parameter server failed or was lost",
    MISSING: "a process that the job needs did not come before the deadline",
    PLACE_LOST: "another launcher has taken this one's place",
}


class End(NamedTuple):
    """How a launcher ends: its exit code, and why, a sentence without a full stop."""

    code: int
    why: str


def of_all(ends):
    """The code of a job whose launchers ended so: a failed command's before the others'."""
    failed = {end.code for end in ends if end.code}
    return COMMAND_FAILED if COMMAND_FAILED in failed else max(failed, default=DONE)


def listing():
    """The codes, for the command's --help."""
    lines = ["  {}  {}".format(code, MEANINGS[code]) for code in sorted(MEANINGS)]
    return "\n".join(["its own exit codes:"] + lines)
