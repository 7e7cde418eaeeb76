"""Everything that this project raises on purpose.

    SemisyncError
    ├── BadInput        a file, a row or a value that cannot be trusted or used
    │   ├── MissingColumn   a data set without a requested column
    │   └── MissingValue    a row without a value that is needed, where another can stand for it
    ├── UsageError      the call itself is wrong: an option, an argument, an order of steps
    ├── MissingExtra    an optional dependency is not installed
    └── Several         more than one of these, found at once

Each message is one sentence: the fault, its place, the expected value, and the remedy.
The command line prints it without a traceback and ends with exit code 3. Any other exception is
a defect, and ends with exit code 4.
"""

import contextlib


class SemisyncError(Exception):
    """Base of every error of semisync, graph_rewrite, migrate and parity."""


class BadInput(SemisyncError):
    """The input is missing, truncated, corrupt or not what it claims to be."""


class MissingColumn(BadInput):
    """A data set lacks `column`; a caller that knows its purpose can say how to name another."""

    column = None

    @classmethod
    def of(cls, where, column, present):
        """The error of a data set that has the columns `present`."""
        listed = ", ".join(present)
        error = cls("{} has no column {!r}; it has: {}".format(where, column, listed))
        error.column = column
        return error


class MissingValue(BadInput):
    """The row at `place` lacks a value that every row needs, and for which another can stand."""

    place = None

    @classmethod
    def of(cls, place, what, remedy):
        """The error for a value that is `what`, such as "empty"."""
        error = cls("{} is {}; every row needs a value: {}".format(place, what, remedy))
        error.place = place
        return error


class UsageError(SemisyncError):
    """The caller's request has no meaning, or came at the wrong time."""


class MissingExtra(SemisyncError):
    """A dependency of one subcommand is not installed; the message names the extra."""


class Several(SemisyncError):
    """More than one thing is wrong, each an error of `errors`."""

    def __init__(self, errors):
        super().__init__("; ".join(map(str, errors)))
        self.errors = list(errors)


class Findings:
    """All faults of an input, rather than the first alone.

    Attributes:
        errors: those so far, each once.
    """

    def __init__(self):
        self.errors = []

    def note(self, error):
        """Adds an error, or the parts of a `Several`."""
        known = set(map(str, self.errors))
        self.errors += [one for one in getattr(error, "errors", [error]) if str(one) not in known]

    @contextlib.contextmanager
    def noting(self, kind=SemisyncError):
        """Ends the block where it raises an error of this kind, and records the error."""
        try:
            yield
        except kind as error:
            self.note(error)

    def end(self):
        """Raises the collected errors: the error itself if it is one, else `Several`."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            raise Several(self.errors)
