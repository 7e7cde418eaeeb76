"""Sentences shared by many messages."""

from typing import Iterable

_LONGEST = 500  # characters of an error


def some_of(names: Iterable[str], most: int = 6) -> str:
    """The first names of a list that may be long: "a, b and 7 more"; "" of none.

    Quotes are the caller's: `some_of(map(repr, names))`.
    """
    names = list(names)
    shown = ", ".join(names[:most])
    more = len(names) - most
    return "{} and {:,} more".format(shown, more) if more > 0 else shown


def words_of(error: BaseException) -> str:
    """Another library's message, on one line and not too long; its type where it says
    nothing."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
