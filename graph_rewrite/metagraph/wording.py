"""How a report names many things in one line."""

import collections
import re
from typing import Dict, List, Tuple

_NAMED = 8  # how many names a line lists at most
_QUOTED = re.compile("'[^']*'")


def some(names):
    """A list that may be long, in words, each of its names once."""
    names = list(collections.OrderedDict.fromkeys(names))
    more = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return "{} and {} more".format(shown, more) if more > 0 else shown or "none"


def batch_norms(names):
    """How many BatchNorms these are; several of one name are copies that share their variables."""
    count = len(set(names))
    copies = ", {} copies".format(len(names)) if len(names) > count else ""
    return "{} BatchNorm{}{}".format(count, "s" if count > 1 else "", copies)


def alike(found):
    """(names, sentence) for each thing that is to be said of some `BatchNorm`s.

    In a sentence what belongs to a BatchNorm is called by its name within the BatchNorm's scope;
    of sentences that differ in names alone the first stands for all.
    """
    told: Dict[str, Tuple[List[str], str]] = collections.OrderedDict()
    for each in found:
        for sentence in filter(None, (each.left_alone, each.finding)):
            sentence = sentence.replace("'{}/".format(each.name), "'")
            told.setdefault(_QUOTED.sub("", sentence), ([], sentence))[0].append(each.name)
    return told.values()
