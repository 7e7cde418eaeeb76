"""The lookup tables of a model: vocabularies, with the keys and values that initialise them.

    HashTable(V2)  <-  InitializeTable(V2), LookupTableImport(V2)      keys and values, constants
                   <-  InitializeTableFromTextFile(V2)                 a file, see vocabulary_files

The op that initialises a table is not an ancestor of the outputs: it is searched for among the ops
that use the table.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from migrate.graph.attributes import dtypes, integer, string
from migrate.graph.index import index_of
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.constants import Constants
from migrate.model.folding import Known
from migrate.model.ops.values import as_data, literal, torch_type
from migrate.model.source.names import Names, local_name
from migrate.model.vocabulary_files import VocabularyFiles
from semisync.common.errors import BadInput
from semisync.common.walks import along

TABLES = {"HashTable", "HashTableV2"}
SIZES = {"LookupTableSize", "LookupTableSizeV2"}
_IMPORTS = {"InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2"}
_FINDS = {"LookupTableFind", "LookupTableFindV2"}
_FILES = {"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"}
_PASSING = {"Identity", "PlaceholderWithDefault", "ReadVariableOp"}


class Tables:
    """The lookup tables of one model.

    Attributes:
        sources: attribute of the module -> the expression that makes the table.
        files: the files that fill them.
    """

    def __init__(self, graph: Graph, names: Names, constants: Constants) -> None:
        self._graph, self._names, self._constants = graph, names, constants
        self._known = Known(graph)
        self._by_node: Dict[str, str] = {}
        self.sources: Dict[str, str] = {}
        self.files = VocabularyFiles(graph)

    def attribute(self, node: Node) -> str:
        """The attribute that holds the table of `node`."""
        if node.name not in self._by_node:
            name = self._names.fresh(local_name(node.name))
            self._by_node[node.name] = "self." + name
            self.sources[name] = self._source(node, name)
        return self._by_node[node.name]

    def _source(self, table: Node, attribute: str) -> str:
        for user in self._users(table):
            if user.op in _IMPORTS:
                keys = self._constant(table, user.inputs[1], attribute + "_keys")
                values = self._constant(table, user.inputs[2], attribute + "_values")
                return f"runtime.LookupTable({keys}, {values}, {self._default(table)})"
            if user.op in _FILES:
                return self._from_file(table, user)
        raise BadInput(
            f"{self._graph.path}: nothing initialises the lookup table {table.name!r}; its values "
            "are not in the graph"
        )

    def _users(self, table: Node) -> List[Node]:
        # Every op on a lookup table takes it as input 0.
        return [use.node for use in index_of(self._graph).uses(table.name) if use.input == 0]

    def _constant(self, table: Node, edge: Edge, name: str) -> str:
        array = self._known.value(edge)
        if array is None:
            raise BadInput(
                f"{self._graph.path}: the keys or values of the lookup table {table.name!r} are "
                f"computed by {edge[0]!r}, not from constants alone"
            )
        return self._constants.expression(array, name)

    def described(self, table: Node) -> Dict[str, Any]:
        """A table's content as data: keys and values, or its file among the assets; else {}."""
        for user in self._users(table):
            if user.op in _IMPORTS:
                keys, values = (self._known.value(edge) for edge in user.inputs[1:3])
                if keys is not None and values is not None:
                    return {"keys": as_data(keys), "values": as_data(values)}
            if user.op in _FILES:
                columns = {
                    name: integer(self._graph, user, name) for name in ("key_index", "value_index")
                }
                more: Dict[str, Any] = {"size": _vocabulary_size(self._graph, user)}
                # -1 is the line's number and -2 the whole line (tf.lookup.TextFileIndex): neither
                # needs a delimiter.
                if max(columns.values()) >= 0:
                    more["delimiter"] = _delimiter(self._graph, user)
                if integer(self._graph, user, "offset"):
                    more["offset"] = integer(self._graph, user, "offset")
                name = self._constants.asset_name(self._file(table, user))
                return {"file": name, **columns, **more}
        return {}

    def _from_file(self, table: Node, initialiser: Node) -> str:
        graph = self._graph
        arguments = {
            "key_index": integer(graph, initialiser, "key_index"),
            "value_index": integer(graph, initialiser, "value_index"),
            "vocab_size": _vocabulary_size(graph, initialiser),
            "delimiter": repr(_delimiter(graph, initialiser)),
            "default": self._default(table),
            "key_dtype": _type(graph, table, "key_dtype"),
            "value_dtype": _type(graph, table, "value_dtype"),
        }
        if integer(graph, initialiser, "offset"):
            arguments["offset"] = integer(graph, initialiser, "offset")
        more = ", ".join(f"{key}={value}" for key, value in arguments.items())
        path = self._file(table, initialiser)
        return f"runtime.LookupTable.from_text_file({self._constants.asset(path)}, {more})"

    def _named(self, initialiser: Node) -> Node:
        """The node that holds the file's name; TensorFlow 2 assigns it to a variable first."""
        graph = self._graph

        def handed(name: str) -> Optional[str]:
            if graph.nodes[name].op not in _PASSING:
                return None
            source = graph.nodes[graph.nodes[name].inputs[0][0]]
            users = self._users(source) if source.op == "VarHandleOp" else []
            assigns = [user for user in users if user.op == "AssignVariableOp"]
            return assigns[0].inputs[1][0] if len(assigns) == 1 else source.name

        *_, last = along(initialiser.inputs[1][0], handed, graph.path)
        node = graph.nodes[last]
        if node.op != "Const" and node.name not in graph.assets:
            raise BadInput(
                f"{graph.path}: the file of {initialiser.name!r} is computed, expected a constant"
            )
        return node

    def _file(self, table: Node, initialiser: Node) -> str:
        return self.files.of(table.name, self._named(initialiser))

    def _default(self, table: Node) -> str:
        """The value that the look-ups return for a missing key; "None" if no look-up states it."""
        for user in self._users(table):
            if user.op in _FINDS:
                default = self._known.value(user.inputs[2])
                if default is not None:
                    return literal(default)
        return "None"


def _vocabulary_size(graph: Graph, node: Node) -> int:
    """The number of lines to read; -1, the default, which a SavedModel may omit: the whole file."""
    return integer(graph, node, "vocab_size") if "vocab_size" in node.attrs else -1


def _delimiter(graph: Graph, node: Node) -> str:
    """One byte, also beyond ASCII, as Python writes those of a file's name."""
    return (string(graph, node, "delimiter") or b"\t").decode("utf-8", "surrogateescape")


def _type(graph: Graph, table: Node, name: str) -> str:
    dtype = dtypes(graph, table, name)[0]
    return "runtime.Strings" if dtype == "string" else torch_type(dtype)
