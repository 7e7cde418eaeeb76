"""The two sides train with different optimizers.

The score is 1: no factor tells how one optimizer's update compares with another's.
"""

import re
from typing import Optional

from parity.diagnosis.case import Case
from parity.diagnosis.suspect import SETTINGS, Suspect

NAME = "optimizer"


def suspect(case: Case) -> Optional[Suspect]:
    """Compares the optimizers' names, without package and the word Optimizer."""
    if case.models is None:
        return None
    old, new = (facts.optimizer for facts in case.models)
    if old is None or new is None or _plain(old) == _plain(new):
        return None
    return Suspect(
        NAME,
        1.0,
        (f"The baseline trains with {old}, the candidate with {new}.",),
        f"Train the candidate with {old}; migrate.torchrec.optimizers has TensorFlow's that torch "
        "and FBGEMM lack.",
        SETTINGS,
    )


def _plain(name: str) -> str:
    return re.sub(r"optimizer$", "", name.rpartition(".")[2].lower())
