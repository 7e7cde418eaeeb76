"""Everything that this project raises on purpose.

    SemisyncError
    ├── BadInput        a file, a row or a value that cannot be trusted or used
    │   └── MissingColumn   a data set without a column that was asked for
    ├── UsageError      the call itself is wrong: an option, an argument, an order of steps
    └── MissingExtra    an optional dependency is not installed

Each message is one sentence that says what is wrong, where, what was expected and what to do.
The command line prints it without a traceback and ends with exit code 3. Any other exception is
a defect, and ends with exit code 4.
"""


class SemisyncError(Exception):
    """Base of every error of semisync, graph_rewrite, migrate and parity."""


class BadInput(SemisyncError):
    """The input is missing, truncated, corrupt or not what it claims to be."""


class MissingColumn(BadInput):
    """A data set lacks `column`; who knows what it is for can say how to name another."""

    column = None

    @classmethod
    def of(cls, where, column, present):
        """The error of a data set that has the columns `present`."""
        listed = ", ".join(present)
        error = cls("{} has no column {!r}; it has: {}".format(where, column, listed))
        error.column = column
        return error


class UsageError(SemisyncError):
    """The caller asked for something that has no meaning or came at the wrong time."""


class MissingExtra(SemisyncError):
    """A dependency of one subcommand is not installed; the message names the extra."""
