"""How both sides are run."""

from __future__ import annotations

import sys
from typing import Any, Mapping, NamedTuple, Optional, Sequence

from migrate.scoring.module_inputs import Named
from migrate.scoring.run import Reading
from semisync.common.tensor_names import in_session, short

ROWS_AT_A_TIME = 512


class Setting(NamedTuple):
    """The settings that neither the checkpoint nor the data set contains.

    Attributes:
        meta: path of the MetaGraph; None: the conversion's, which by default stands beside the
            checkpoint.
        named: (column, input, whether it is sparse) of each input whose column has another name.
        feeds: {placeholder: value} of constants: rates of dropout, learning rates, flags.
        reading: how columns become features, and the rows of a batch.
        python: the interpreter that has TensorFlow.
        modules: to import first, for the ops that they register.
        timeout: seconds for each of its answers.
        assets: files elsewhere that the graph fills lookup tables from, as in `migrate.load_model`.
    """

    meta: Optional[str] = None
    named: Named = ()
    feeds: Mapping[str, Any] = {}
    reading: Reading = Reading(size=ROWS_AT_A_TIME)
    python: str = sys.executable
    modules: Sequence[str] = ()
    timeout: float = 600.0
    assets: Sequence[str] = ()

    def feed(self, tensor: str) -> Any:
        """The constant of a placeholder, with or without ":0"; None: there is none."""
        return self.feeds.get(short(tensor), self.feeds.get(in_session(tensor)))


DEFAULT = Setting()
