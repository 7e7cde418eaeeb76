"""A torch model: the user's callable, around the modules of a converted checkpoint.

The factory gets the converted directory and returns a module or another callable, which gets the
features of a batch, a dict, and returns the scores, a float tensor [rows] or [rows, 1]:

    features[NAME]       tensor [rows] or [rows, k] of a dense input; of text a list of bytes
    features["sparse"]   KeyedJaggedTensor of all sparse inputs, in the order of the options

It runs in inference mode, a module also in eval mode.
"""

import importlib
import importlib.util
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from migrate.scoring import torch_code
from migrate.scoring.model import Feature, Input
from semisync.common.errors import BadInput, UsageError

SPARSE = "sparse"


class TorchModel:
    """Calls the factory; then ready to score, any number of rows at a time.

    Args:
        factory: "MODULE:NAME" or "FILE.py:NAME".
        converted: the directory that `semisync convert` wrote.
        inputs: the inputs of the model; the sparse ones in int64.
        origin: `model.Model.origin` without the versions.

    Raises:
        UsageError: there is no such factory.
        BadInput: the user's code raises an error.
    """

    batch: Optional[int] = None
    output: Optional[str] = None

    def __init__(
        self, factory: str, converted: str, inputs: Sequence[Input], origin: Dict[str, Any]
    ) -> None:
        import torch

        self.inputs = list(inputs)
        self._factory, self._origin = factory, origin
        with torch_code.explained(factory):
            self._model = _find(factory)(converted)
        if isinstance(self._model, torch.nn.Module):
            self._model.eval()
        elif not callable(self._model):
            raise BadInput(f"{factory} returned {type(self._model).__name__}, not a callable")

    def score(self, rows: int, features: List[Feature]) -> np.ndarray:
        """The output for a batch, of the model's own shape; half precision is widened."""
        given = self._tensors(features)
        with torch_code.explained(self._factory):
            found = torch_code.run(self._model, given)
        return torch_code.scores(found, self._factory)

    def origin(self) -> Dict[str, Any]:
        """As `model.Model.origin`."""
        return {**self._origin, "versions": torch_code.versions()}

    def close(self) -> None:
        """Does nothing: no process was started."""

    def _tensors(self, features: List[Feature]) -> Dict[str, Any]:
        import torch

        given: Dict[str, Any] = {}
        keys, values, lengths = [], [], []
        for wanted, feature in zip(self.inputs, features):
            if feature.lengths is not None:
                keys.append(wanted.name)
                values.append(feature.numpy())
                lengths.append(feature.lengths)
            elif isinstance(feature.values, np.ndarray):
                given[wanted.name] = torch.tensor(feature.values)
            else:
                given[wanted.name] = feature.numpy().tolist()
        if keys:
            from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

            given[SPARSE] = KeyedJaggedTensor(
                keys,
                torch.from_numpy(np.concatenate(values)),
                lengths=torch.from_numpy(np.concatenate(lengths)),
            )
        return given


def _find(factory: str) -> Callable[[str], Any]:
    """Imports the factory; its own imports may be beside it, or in the working directory."""
    place, _, name = factory.rpartition(":")
    if not place or not name:
        raise UsageError(f"--torch-model is MODULE:NAME or FILE.py:NAME, not {factory!r}")
    if place.endswith(".py"):
        if not os.path.isfile(place):
            raise UsageError(f"there is no file {place}")
        sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
        module_name = os.path.splitext(os.path.basename(place))[0]
        spec: Any = importlib.util.spec_from_file_location(module_name, place)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        module = importlib.import_module(place)
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{place} has no function {name!r}")
    return function
