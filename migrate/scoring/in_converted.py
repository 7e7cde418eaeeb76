"""The module of a converted directory: its own model.py, with the graph's own inputs and outputs.

It scores in inference mode and in eval mode, like a TensorFlow session with the same feeds;
`module_inputs` determines these.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from migrate.scoring import torch_code
from migrate.scoring.model import Feature
from migrate.scoring.module_inputs import ModuleInputs, Named
from semisync.common.errors import UsageError
from semisync.common.tensor_names import short


class ConvertedModel:
    """Loads DIRECTORY/model.py and its weights.

    Args:
        directory: the one that `semisync convert --model` wrote.
        named: (column, input, whether it is sparse) of each --input and --sparse.
        feeds: {input: value} of constants.
        output: one of those that model.py lists; None for the only one.
        origin: `model.Model.origin` without the versions.

    Attributes:
        module: that of model.py.

    Raises:
        UsageError: a name is not the model's or a value is missing.
        BadInput: the directory is not a complete conversion with its model.
    """

    def __init__(
        self,
        directory: str,
        named: Named,
        feeds: Mapping[str, Any],
        output: Optional[str],
        origin: Dict[str, Any],
    ) -> None:
        self._path, self._origin = f"{directory}/model.py", origin
        with torch_code.explained(self._path):
            from migrate.runtime.serving.memory import keep_freed_memory
            from migrate.runtime.source import read_source

            keep_freed_memory()
            source = read_source(directory)
            self.module = source.load()
        self.output, self._place = output, _place(source.OUTPUTS, output, self._path)
        self._several = len(source.OUTPUTS) > 1
        self._given = ModuleInputs(self._path, source.INPUTS, named, feeds)
        self.inputs, self.batch = self._given.inputs, self._given.batch

    def score(self, rows: int, features: List[Feature]) -> np.ndarray:
        """The output for a batch, of the model's own shape; half precision is widened."""
        with torch_code.explained(self._path):
            found = torch_code.run(self.module, self._given.of(features))
            found = found[self._place] if self._several else found
        return torch_code.scores(found, self._path)

    def origin(self) -> Dict[str, Any]:
        """As `model.Model.origin`, with the share so far of look-ups by raw id without a row."""
        more = {"unknown_ids": self.unknown_ids()} if self.unknown_ids() else {}
        return {**self._origin, **more, "versions": torch_code.versions()}

    def unknown_ids(self) -> Dict[str, float]:
        """The share of ids without a row, for tables that lacked any."""
        tables = self.module.named_modules()
        return {n: m.unknown / m.looked_up for n, m in tables if getattr(m, "unknown", 0)}

    def close(self) -> None:
        """Does nothing: no process was started."""


def _place(outputs: Sequence[str], named: Optional[str], path: str) -> int:
    if named is None and len(outputs) == 1:
        return 0
    listed = torch_code.listing(outputs)
    if named is None:
        raise UsageError(f"{path} gives several outputs; name one with --output: {listed}")
    plain = [short(output) for output in outputs]
    if short(named) not in plain:
        raise UsageError(
            f"{path} gives no output {named!r} but: {listed}; `semisync convert --model --output "
            f"{named}` makes one that does"
        )
    return plain.index(short(named))
