"""The key of a training's checkpoint that holds a variable, or a slot of it.

A training names its tensors after its own modules: the prefix of a known name is free
(`model.`, `module.`), and it must be the name of one tensor alone. Known are

    NAME                      that the caller gives, ".T" behind it where it is transposed
    an attribute of model.py  which says in VARIABLES what it is in TensorFlow
    embedding_bags.T.weight, embeddings.T.weight     of the table T
    the conversion's own name, such as dense.V

and for the slots of each the same with ".SLOT" behind it: torch.optim's word for the slot, FBGEMM's
with the table's name before it, or the conversion's own name.
"""

from __future__ import annotations

import ast
import os
from typing import (
    Any,
    Collection,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

from semisync.common.errors import BadInput, UsageError
from semisync.common.sentences import some_of

_CONTAINERS = ("embedding_bags", "embeddings")
_TRANSPOSED = ".T"


class Place(NamedTuple):
    """The place of a variable, or of some rows of it.

    Attributes:
        key: in the checkpoint.
        name: the end of it that is known.
        axes: the variable's axes in their order there; None where it is the same.
        first: number of its first row in the variable.
    """

    key: str
    name: str
    axes: Optional[Tuple[int, ...]] = None
    first: int = 0


class Keys:
    """The keys of a checkpoint, found by their suffixes."""

    def __init__(self, keys: Collection[str], place: str) -> None:
        self._place, self._keys = place, set(keys)
        self._by_end: Dict[str, List[str]] = {}
        for key in keys:
            self._by_end.setdefault(key.rpartition(".")[2], []).append(key)

    def find(self, name: str, prefix: Optional[str] = None) -> Optional[str]:
        """The key that is `name`, or ends with it; None if there is none.

        Args:
            prefix: before it, where known.

        Raises:
            BadInput: there are several.
        """
        # An exact name is meant, even where longer keys end with it.
        for exact in ((prefix or "") + name, name):
            if exact in self._keys:
                return exact
        keys = self._by_end.get(name.rpartition(".")[2], [])
        found = [key for key in keys if key.endswith("." + name)]
        if len(found) > 1:
            raise BadInput(
                f"{self._place} has {name!r} more than once: {some_of(sorted(found))}; save the "
                "model once"
            )
        return found[0] if found else None

    def common_prefix(self, names: Collection[str]) -> Optional[str]:
        """The prefix of `names`, all of one module; None if one is missing.

        Raises:
            BadInput: there are several.
        """
        common: Optional[Set[str]] = None
        for name in names:
            keys = self._by_end.get(name.rpartition(".")[2], [])
            own = {key[: -len(name)] for key in keys if ("." + key).endswith("." + name)}
            common = own if common is None else common & own
        if common and len(common) > 1:
            listed = some_of(map(repr, sorted(common)))
            raise BadInput(f"{self._place} has the model more than once, as {listed}; save it once")
        return next(iter(common)) if common else None


def given_place(name: str, key: str, keys: Keys, rank: int) -> Place:
    """The place that the caller gives for `name`; raises UsageError if it does not exist."""
    bare = key[: -len(_TRANSPOSED)] if key.endswith(_TRANSPOSED) else key
    found = keys.find(bare)
    if found is None or (bare != key and rank != 2):
        problem = "is not there" if found is None else f"has {rank} axes, and .T turns two"
        raise UsageError(f"names gives {key!r} for {name!r}, which {problem}")
    return Place(found, bare, (1, 0) if bare != key else None)


def table_names(table: str) -> Iterator[str]:
    """The suffixes of the key of a table's weight."""
    for container in _CONTAINERS:
        yield f"{container}.{table}.weight"


def read_variables(directory: str) -> Dict[str, List[Place]]:
    """VARIABLES of a conversion's model.py, attributes by TensorFlow's name; {} without one."""
    path = os.path.join(directory, "model.py")
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            # Parsed, not run: it may be a stranger's program.
            tree = ast.parse(file.read())
        (table,) = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "VARIABLES"
        ]
        places: Dict[str, List[Place]] = {}
        for key, call in zip(table.keys, table.values):  # type: ignore[attr-defined]
            name, place = _place(ast.literal_eval(key), call)
            places.setdefault(name, []).append(place)
    except (OSError, SyntaxError, ValueError, AttributeError) as error:
        raise BadInput(
            f"{path} does not say in VARIABLES what its tensors are in TensorFlow ({error}); "
            "convert the model again"
        ) from error
    return {name: sorted(of, key=lambda place: place.first) for name, of in places.items()}


def _place(attribute: str, call: Any) -> Tuple[str, Place]:
    """(TensorFlow's name, place) of one entry, Variable(name, axes=..., rows=...)."""
    given: Mapping[str, Any] = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    name = ast.literal_eval(call.args[0])
    rows = given.get("rows")
    return name, Place(attribute, attribute, given.get("axes"), rows[0] if rows else 0)
