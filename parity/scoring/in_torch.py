"""A torch model: the user's callable, around the modules of a converted checkpoint.

The factory gets the converted directory and returns a module or another callable, which gets the
features of a batch, a dict, and returns the scores, a float tensor [rows] or [rows, 1]:

    features[NAME]       tensor [rows] or [rows, k] of a dense input; of text a list of bytes
    features["sparse"]   KeyedJaggedTensor of all sparse inputs, in the order of the options

It runs in inference mode, a module also in eval mode.
"""

import contextlib
import importlib
import importlib.util
import logging
import os
import platform
import re
import sys
import traceback
from typing import Any, Callable, Dict, Iterator, List, Sequence

import numpy as np

from parity.scoring.model import Feature, Input
from semisync.common.errors import BadInput, SemisyncError, UsageError

SPARSE = "sparse"
_NOT_THE_USERS = re.compile(r"site-packages|^<|\bimportlib\b")


class TorchModel:
    """Calls the factory; then ready to score, any number of rows at a time.

    Args:
        factory: "MODULE:NAME" or "FILE.py:NAME".
        converted: the directory that `semisync convert` wrote.
        inputs: what the model takes; the sparse ones in int64.
        origin: what `model.Model.origin` returns, but for the versions.

    Raises: UsageError where there is no such factory, BadInput for what the user's code raises.
    """

    batch = None

    def __init__(
        self, factory: str, converted: str, inputs: Sequence[Input], origin: Dict[str, Any]
    ) -> None:
        # torchrec 1.8 asks torch 2.13 for something under its old name, at every import.
        logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)
        import torch

        self.inputs = list(inputs)
        self._factory, self._origin = factory, origin
        with self._explained():
            self._model = _find(factory)(converted)
        if isinstance(self._model, torch.nn.Module):
            self._model.eval()
        elif not callable(self._model):
            raise BadInput(f"{factory} returned {type(self._model).__name__}, not a callable")

    def score(self, rows: int, features: List[Feature]) -> np.ndarray:
        """The output for a batch, of the model's own shape; half precision is widened."""
        import torch

        given = self._tensors(features)
        with torch.inference_mode(), self._explained():
            scores = self._model(given)
        if not isinstance(scores, torch.Tensor) or not scores.is_floating_point():
            kind = getattr(scores, "dtype", type(scores).__name__)
            raise BadInput(f"{self._factory} gave {kind}; a tensor of floats is expected")
        scores = scores.detach().cpu()
        return (scores if scores.dtype == torch.float64 else scores.float()).numpy()

    def origin(self) -> Dict[str, Any]:
        """As `model.Model.origin`."""
        versions = {
            name: sys.modules[name].__version__
            for name in ("numpy", "torch", "torchrec")
            if name in sys.modules
        }
        return {**self._origin, "versions": {"python": platform.python_version(), **versions}}

    def close(self) -> None:
        """Nothing to end."""

    def _tensors(self, features: List[Feature]) -> Dict[str, Any]:
        import torch

        given: Dict[str, Any] = {}
        keys, values, lengths = [], [], []
        for wanted, feature in zip(self.inputs, features):
            if feature.lengths is not None:
                keys.append(wanted.name)
                values.append(feature.values)
                lengths.append(feature.lengths)
            elif feature.values.dtype == object:
                given[wanted.name] = feature.values.tolist()
            else:
                given[wanted.name] = torch.tensor(feature.values)
        if keys:
            from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

            given[SPARSE] = KeyedJaggedTensor(
                keys,
                torch.from_numpy(np.concatenate(values)),
                lengths=torch.from_numpy(np.concatenate(lengths)),
            )
        return given

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """What the user's code raises becomes one sentence with the line of that code."""
        try:
            yield
        except SemisyncError:
            raise
        except Exception as error:  # anything that a model may raise
            text = (str(error).strip().splitlines() or [""])[0][:300]
            raise BadInput(
                f"{self._factory} failed{_place(error)}: {type(error).__name__}: {text}"
            ) from error


def _place(error: Exception) -> str:
    """The last line of the user's own code on the way to the error."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename != __file__ and not _NOT_THE_USERS.search(frame.filename):
            return f" in {frame.filename}, line {frame.lineno}"
    return ""


def _find(factory: str) -> Callable[[str], Any]:
    """Imports the factory; what it imports may stand beside it, or in the working directory."""
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
