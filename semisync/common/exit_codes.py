"""The exit codes of the `semisync` command; every --help and docs/commands.md list them."""

DONE = 0
NOT_EQUIVALENT = 1
INCONCLUSIVE = 2
BAD_INPUT = 3
INTERNAL_ERROR = 4
INTERRUPTED = 130  # a shell's exit status of a process that Ctrl-C ended

MEANINGS = {
    DONE: "done, or equivalent",
    NOT_EQUIVALENT: "not equivalent, or not verified",
    INCONCLUSIVE: "inconclusive",
    BAD_INPUT: "bad input or usage",
    INTERNAL_ERROR: "internal error: a defect of semisync, never an answer",
    INTERRUPTED: "interrupted, as by Ctrl-C",
}


def listing():
    """The codes, for the end of a --help."""
    lines = ["  {:<3}  {}".format(code, meaning) for code, meaning in sorted(MEANINGS.items())]
    return "\n".join(["exit codes:"] + lines)
