"""One update of a variable by an optimizer with slots."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple


class Update(NamedTuple):
    """What some nodes of a graph do to a variable.

    optimizer        TensorFlow's name of it
    variable, slots  variable nodes; the slots in the order that their names count
    hyperparameters  None for one that is no constant
    lazy             Adam that moves the rows of the batch alone (LazyAdam)
    """

    optimizer: str
    variable: str
    slots: Tuple[str, ...]
    hyperparameters: Dict[str, Optional[float]]
    lazy: bool
