"""Python names for the nodes of a graph: the last parts of its scopes, each name once."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from typing import AbstractSet, Dict

_OURS = {
    "F",
    "files",
    "given",
    "inputs",
    "math",
    "nn",
    "os",
    "runtime",
    "self",
    "torch",
    "torchrec",
}
_TAKEN = {*_OURS, *keyword.kwlist, *dir(builtins)}

_LONGEST = 200  # bytes of a name; names may become file names, which systems limit to 255

# Scopes of feature columns and look-ups that name a mechanism, not the value.
_HOW = re.compile(
    r"(to_sparse_input|hash_table(_lookup)?|embedding_lookup(_sparse)?|sparsefillemptyrows)(_\d+)?",
    re.IGNORECASE,
)


class Names:
    """Makes Python names that are unique."""

    def __init__(self, taken: AbstractSet[str] = frozenset()) -> None:
        self._next: Dict[str, int] = dict.fromkeys({*_TAKEN, *taken}, 1)

    def fresh(self, wish: str) -> str:
        """`wish` as a Python name; with a number if it is taken."""
        name = _identifier(wish)
        while name in self._next:
            count = self._next[name]
            self._next[name] = count + 1
            numbered = f"{name}_{count}"
            if numbered not in self._next:
                name = numbered
        self._next[name] = 1
        return name

    def is_free(self, wish: str) -> bool:
        """Whether `fresh` would return the name unchanged."""
        return _identifier(wish) not in self._next


def local_name(node: str) -> str:
    """A node's name for its value in a method, after its innermost scope that describes it."""
    *scopes, name = [part for part in node.split("/") if part] or [node]
    telling = [scope for scope in scopes if not _HOW.fullmatch(scope)] or scopes
    return "_".join([*telling[-1:], name])


def scope_name(variable: str) -> str:
    """The name of a variable or a layer as an attribute: all of its scopes."""
    return variable.replace("/", "_")


def layer_scope(variable: str) -> str:
    """The scope of a variable's layer; for a part, that of the whole variable."""
    whole = re.sub(r"/part_\d+$", "", variable)
    return whole.rpartition("/")[0] or whole


def _identifier(wish: str) -> str:
    wish = unicodedata.normalize("NFKC", wish)  # Python normalises identifiers to NFKC
    name = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", wish)).strip("_").lower()
    if not name.isidentifier():
        name = "x_" + re.sub(r"[^0-9a-z_]", "", name)
    return name.encode()[:_LONGEST].decode(errors="ignore")
