"""The graph that a model is written from: control flow and tables by raw id in one form each."""

from migrate.graph.lowering.by_id import with_tables_by_id
from migrate.graph.lowering.by_server import with_servers
from migrate.graph.lowering.calls import without_calls
from migrate.graph.lowering.constant_conds import without_constant_conds
from migrate.graph.metagraph import Graph, explained


def lower(graph: Graph) -> Graph:
    """The graph without calls of functions and branches that never run, and with its tables by id
    as variables; itself if it has none of these.

    Raises:
        BadInput: a function is missing, or the graph is damaged.
    """
    with explained(graph):
        return with_servers(with_tables_by_id(without_constant_conds(without_calls(graph))))
