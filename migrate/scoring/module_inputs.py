"""The inputs of a converted module for each batch: columns of the data set, and constants.

Every input that the module lists takes the column of its name, unless --input or --sparse names
another; one that has a default, or a value from --feed, takes none.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from migrate.scoring import torch_code
from migrate.scoring.model import Feature, Input
from semisync.common.errors import UsageError
from semisync.common.tensor_names import in_session

_SENT_AS = {"string": "bytes", "bfloat16": "float32"}  # which the module narrows

Named = Sequence[Tuple[str, str, bool]]  # column, input, whether it is sparse


class ModuleInputs:
    """The inputs of one module.

    Args:
        path: the module's name in messages.
        wanted: its inputs, by name: INPUTS of its model.py.
        named: of each --input and --sparse.
        feeds: {input: value} of constants.
        off: {input: value}, the likely one of an input that --feed must give, for the message.

    Raises:
        UsageError: a name is not the module's or a value is missing.
        BadInput: a constant of another type.

    Attributes:
        inputs: those that take a column, in the order of `wanted`.
        constants: tensors of the others, by name.
        batch: the number of rows in every run, if an input fixes it, or None.
    """

    def __init__(
        self,
        path: str,
        wanted: Mapping[str, Any],
        named: Named,
        feeds: Mapping[str, Any],
        off: Mapping[str, Any] = {},
    ) -> None:
        from migrate.runtime import columns

        self._path, self._wanted, self._off = path, wanted, off
        self.constants = {
            name: columns.constant(name, wanted[name], value)
            for name, value in self._by_name(feeds, "--feed").items()
        }
        self.inputs = self._inputs(named)
        sizes = [wanted[taken.name].shape for taken in self.inputs if not taken.sparse]
        self.batch: Optional[int] = next((size[0] for size in sizes if size and size[0]), None)

    def of(self, features: Sequence[Feature]) -> Dict[str, Any]:
        """The module's inputs for one batch, by name.

        Args:
            features: of `inputs`, in their order.

        Raises:
            BadInput: a shape differs.
        """
        given = dict(self.constants)
        for taken, feature in zip(self.inputs, features):
            given[taken.name] = tensor(taken.name, self._wanted[taken.name], feature)
        return given

    def _inputs(self, named: Named) -> List[Input]:
        column_of = self._by_name({name: column for column, name, _ in named}, "--input")
        for name in self._by_name({name: name for _, name, sparse in named if sparse}, "--sparse"):
            if not self._wanted[name].sparse:
                raise UsageError(
                    f"{self._path}: the input {name!r} is not sparse; --input names it"
                )
        twice = [name for name in column_of if name in self.constants]
        if twice:
            raise UsageError(f"the input {twice[0]!r} has both a column and a value of --feed")
        found = []
        for name, wanted in self._wanted.items():
            if name in self.constants or (wanted.optional and name not in column_of):
                continue
            if wanted.shape is not None and not len(wanted.shape):
                raise UsageError(
                    f"{self._path}: the input {name!r} is one value for all rows; give it with "
                    f"--feed {name}={self._off.get(name, 'VALUE')}"
                )
            found.append(taking(column_of.get(name, name), name, wanted))
        return found

    def _by_name(self, given: Mapping[str, Any], option: str) -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        for name, value in given.items():
            plain = input_called(name, self._wanted)
            if plain is None:
                raise UsageError(
                    f"{self._path} has no input {name!r} for {option}; it has: "
                    f"{torch_code.listing(self._wanted)}"
                )
            if plain in found:
                raise UsageError(f"{option} names the input {plain!r} twice")
            found[plain] = value
        return found


def taking(column: str, name: str, wanted: Any) -> Input:
    """An input of a module, an entry of INPUTS in its model.py, that takes a column."""
    dtype = _SENT_AS.get(wanted.dtype, wanted.dtype)
    return Input(column, name, dtype, wanted.sparse, None if wanted.sparse else wanted.shape)


def tensor(name: str, wanted: Any, feature: Feature) -> Any:
    """The value of one of a module's inputs; raises BadInput for another shape."""
    from migrate.runtime import columns

    if feature.lengths is None:
        return columns.dense(name, wanted, feature.values)
    return columns.sparse(name, wanted, feature.values, feature.lengths)


def input_called(name: str, wanted: Mapping[str, Any]) -> Optional[str]:
    """The input of a module by its own name, its tensor's with or without ":0", or those of all
    three parts of a sparse one, with commas; None: there is none."""
    if name in wanted:
        return name
    tensors = [in_session(part) for part in name.split(",")]
    for own, one in wanted.items():
        if tensors in ([one.tensors[0]], list(one.tensors)):
            return own
    return None
