"""One possible cause of the difference, and how much of it it would explain."""

from typing import NamedTuple, Tuple

ROWS = "rows"  # the rows themselves show it: undoing it makes the scores agree
SETTINGS = "settings"  # the models are known to differ in it; that it matters is an estimate
SYMPTOM = "symptom"  # a pattern in the rows that several causes have
CHANCE = "chance"  # no cause at all: the seed


class Suspect(NamedTuple):
    """A suspect before it is ranked has its own score; `diagnose` weighs it against the others."""

    name: str
    score: float  # in [0, 1]: the share of the difference that it would explain
    evidence: Tuple[str, ...]  # sentences
    remedy: str  # one sentence
    basis: str  # ROWS, SETTINGS, SYMPTOM or CHANCE
