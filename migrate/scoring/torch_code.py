"""Running torch code that is not ours: a user's model, or the model.py of a conversion."""

from __future__ import annotations

import contextlib
import logging
import pathlib
import platform
import re
import sys
import traceback
from typing import Any, Callable, Dict, Iterable, Iterator

import numpy as np

from semisync.common.errors import BadInput, SemisyncError
from semisync.common.sentences import some_of

_LIBRARY = re.compile(r"site-packages|^<|\bimportlib\b")
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_OURS = tuple(f"{_ROOT}/{name}/" for name in ("graph_rewrite", "migrate", "parity", "semisync"))
_LISTED = 20  # names in a sentence

# torchrec 1.8 uses a deprecated name of torch 2.13 at every import.
logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)


def run(model: Callable[[Any], Any], given: Any) -> Any:
    """The model's result for `given`, in inference mode."""
    import torch

    with torch.inference_mode():
        return model(given)


def scores(found: Any, name: str) -> np.ndarray:
    """A model's output as an array, float32 or float64; half precision is widened.

    Raises:
        BadInput: it is not a tensor of floats; name: the model's, for the message.
    """
    import torch

    if not isinstance(found, torch.Tensor) or not found.is_floating_point():
        kind = getattr(found, "dtype", type(found).__name__)
        raise BadInput(f"{name} gave {kind}; a tensor of floats is expected")
    found = found.detach().cpu()
    return (found if found.dtype == torch.float64 else found.float()).numpy()


def versions() -> Dict[str, str]:
    """The versions of Python and of the packages that compute."""
    found = {"python": platform.python_version()}
    for name in ("numpy", "torch", "torchrec"):
        if name in sys.modules:
            found[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
    return found


def listing(names: Iterable[str]) -> str:
    """Names in a sentence, only the first ones if there are many."""
    return some_of(names, _LISTED) or "none"


@contextlib.contextmanager
def explained(name: str) -> Iterator[None]:
    """Turns an error of the code into one sentence with the line; name: the code's, for
    messages."""
    try:
        yield
    except SemisyncError:
        raise
    except Exception as error:  # anything that a model may raise
        text = (str(error).strip().splitlines() or [""])[0][:300]
        raise BadInput(f"{name} failed{_place(error)}: {type(error).__name__}: {text}") from error


def _place(error: Exception) -> str:
    """The last line of the code itself in the error's traceback."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_OURS) and not _LIBRARY.search(frame.filename):
            return f" in {frame.filename}, line {frame.lineno}"
    return ""
