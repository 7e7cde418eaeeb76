"""How a command answers: in lines for people or, with --json, in one document for programs.

1. `add_json` declares the option, which every command has.
2. The command line runs the work `apart` from the answer: with --json, all that is said or printed
   meanwhile, progress included, goes to the standard error.
3. `answer` gives the lines or the document, which then stands alone on the standard output.

An error gives no document: a sentence and an exit code, as without --json.
"""

import contextlib
import sys
from typing import List, TextIO

from semisync.common.terminal import json_lines, say

_kept: List[TextIO] = []  # the standard output, while it is kept for a document


def add_json(parser, what):
    """Declares --json; `what` completes "print ... as JSON"."""
    text = "print {} as JSON, and all else to stderr".format(what)
    parser.add_argument("--json", action="store_true", help=text)


@contextlib.contextmanager
def apart(as_json):
    """Keeps the standard output for the document within the block, if there is to be one."""
    if not as_json:
        yield
        return
    _kept.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _kept.pop()


def is_apart():
    """Whether the standard output is kept for a document."""
    return bool(_kept)


def answer(as_json, document, lines=()):
    """Gives the answer: the document, a value of JSON, or the lines."""
    if not as_json:
        say(*lines)
        return
    with contextlib.redirect_stdout(_kept[-1] if _kept else sys.stdout):
        say(*json_lines(document, indent=1))
