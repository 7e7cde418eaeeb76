"""What the user is told instead of scores."""

import re

_LISTED = 20  # names in a sentence


class Refused(Exception):
    """The model is not what was said of it; the message is for the user."""


def listing(names):
    """The names in a sentence, the first ones of many; t:2 comes before t:10."""
    names = sorted(names, key=_by_numbers)
    more = ["and {} more".format(len(names) - _LISTED)] if len(names) > _LISTED else []
    return ", ".join(names[:_LISTED] + more) or "none"


def _by_numbers(name):
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", name)]


def sizes(shape):
    """A shape in a sentence; None stands for any size."""
    return "[{}]".format(", ".join("?" if size is None else str(size) for size in shape))
