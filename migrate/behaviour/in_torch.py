"""The model.py of a conversion, run on batches, and traced while it runs."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import os
import sys
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from migrate.behaviour.subject import Subject
from migrate.graph.find import frozen_file
from migrate.model.load import Written, build_module
from migrate.model.source.guard import checked_expression
from migrate.runtime.interface import Variable
from migrate.runtime.serving.linear import score_by_onednn
from migrate.runtime.source import SOURCE, read_source
from migrate.runtime.strings import Strings
from migrate.scoring import torch_code
from migrate.verification.carried import Carried

_METHODS = ("forward", "transform", "numeric")


class Converted:
    """A directory that `semisync convert --model` wrote, ready to score.

    Attributes:
        inputs, outputs, variables: INPUTS, OUTPUTS and VARIABLES of its model.py.

    Raises:
        BadInput: it is not a whole conversion with its model, or its code fails.
    """

    def __init__(self, directory: str) -> None:
        self.directory, self.path = directory, f"{directory}/model.py"
        with torch_code.explained(self.path):
            self._source = read_source(directory)
        self.inputs: Mapping[str, Any] = self._source.INPUTS
        self.outputs: Sequence[str] = self._source.OUTPUTS
        self.variables: Mapping[str, Variable] = getattr(self._source, "VARIABLES", {})

    @functools.cached_property
    def module(self) -> Any:
        """The module with the converted weights, in evaluation mode; raises BadInput likewise."""
        with torch_code.explained(self.path):
            return self._source.load()

    def run(self, given: Mapping[str, Any]) -> Tuple[np.ndarray, ...]:
        """The outputs for one batch, in the order of `outputs`."""
        with torch_code.explained(self.path):
            return arrays(torch_code.run(self.module, given))

    def watch(self, given: Mapping[str, Any]) -> Dict[str, Any]:
        """The values of the names in `forward` and its parts when they return, for one batch."""
        with self.watching() as found:
            self.run(given)
        return found

    def names(self) -> Set[str]:
        """The local names that `forward` and its parts assign."""
        trees = (
            node
            for node in ast.walk(ast.parse(self._text()))
            if isinstance(node, ast.FunctionDef) and node.name in _METHODS
        )
        names = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name))
        return {node.id for node in names if isinstance(node.ctx, ast.Store)}

    @contextlib.contextmanager
    def watching(self) -> Iterator[Dict[str, Any]]:
        """The values of the names in `forward` and its parts when they return, for the run in the
        block; complete at its end."""
        model = type(self.module)
        methods = [getattr(model, name, None) for name in _METHODS]
        # The methods themselves, within the decorators of runtime.
        codes = [inspect.unwrap(method).__code__ for method in methods if method is not None]
        found: Dict[str, Any] = {}

        def calls(frame: Any, event: str, _: Any) -> Any:
            return returns if frame.f_code in codes else None

        def returns(frame: Any, event: str, _: Any) -> Any:
            if event == "return":
                found.update(frame.f_locals)
            return returns

        # A debugger or a coverage tool may be tracing.
        before = sys.gettrace()
        sys.settrace(calls)
        try:
            yield found
        finally:
            sys.settrace(before)

    def value(self, text: str, names: Mapping[str, Any]) -> Optional[np.ndarray]:
        """An expression of the source over the names of `watch`; None where it has no value."""
        read = ast.walk(ast.parse(text, mode="eval"))
        own = {node.id for node in read if isinstance(node, ast.Name)} - vars(self._source).keys()
        if own - names.keys():
            return None  # from a branch that was not taken, or a name that no longer exists
        code = checked_expression(text, names.keys())
        try:
            return array(eval(code, vars(self._source), dict(names)))
        except (LookupError, AttributeError):
            return None  # such as a value that has another kind in an edited model.py

    def is_code_of(self, text: str) -> bool:
        """Whether a source has the same code as model.py, apart from the module docstring."""
        codes = [ast.parse(source).body[1:] for source in (self._text(), text)]
        return ast.dump(ast.Module(codes[0], [])) == ast.dump(ast.Module(codes[1], []))

    def line(self, text: str, written: str) -> Optional[Tuple[int, str]]:
        """Number and text of the line that assigns the first name of an expression.

        Args:
            written: the unedited source; the line of a long statement is its first one not in it.
        """
        name, known = text.partition("[")[0], set(written.splitlines())
        lines = self._text().splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if not isinstance(node, ast.Assign):
                continue
            flat = [one for target in node.targets for one in ast.walk(target)]
            if any(isinstance(one, ast.Name) and one.id == name for one in flat):
                numbers = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                others = (number for number in numbers if lines[number - 1] not in known)
                number = next(others, node.lineno)
                return number, lines[number - 1].strip()
        return None

    def _text(self) -> str:
        with open(self.path, encoding="utf-8") as file:
            return file.read()


def open_converted(directory: str) -> Optional[Converted]:
    """The `Converted` of a directory; None for a conversion without its model."""
    return Converted(directory) if os.path.isfile(os.path.join(directory, SOURCE)) else None


def with_weights_of(directory: str, written: Written, subject: Subject) -> Any:
    """The module of a source with a conversion's weights; a frozen graph has none."""
    checkpoint = subject.checkpoint
    if frozen_file(checkpoint) is None:
        checkpoint = Carried(checkpoint, directory)
    module = build_module(written, checkpoint)
    return score_by_onednn(module).eval()


def arrays(found: Any) -> Tuple[np.ndarray, ...]:
    """The outputs of a module as a tuple of arrays."""
    return tuple(map(array, found if isinstance(found, tuple) else (found,)))


def array(value: Any) -> np.ndarray:
    """A tensor, or Strings, as an array in TensorFlow's form."""
    if isinstance(value, Strings):
        return value.numpy()
    return value.detach().cpu().numpy()
