"""runtime.TableById: a look-up by raw id, see `migrate.graph.lowering.by_id`."""

from __future__ import annotations

from typing import List, Optional

from migrate.graph.lowering.by_id import FIND
from migrate.graph.metagraph import Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameters
from migrate.model.source.names import scope_name


def find_by_id(subject: Subject, node: Node) -> Optional[Layer]:
    """The look-up that ends at `node`."""
    if node.op != FIND:
        return None
    table = subject.graph.nodes[node.inputs[0][0]]

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        known = parameters.by_node.get(table.name)
        if known is None:
            scope, _, leaf = table.name.rpartition("/")  # TFRA's a/b is called a/b/a_b
            attribute = parameters.layer(scope if scope_name(scope) == leaf else table.name)
            known = parameters.by_id(table, attribute)
            modules[attribute] = "runtime.TableById(rows={}, dim={})".format(*known.shape)
        attribute = known.attribute.rpartition(".")[0]
        return f"self.{attribute}({values[0].tensor}, {values[1].tensor})"

    # Not to be computed again: a look-up adds new ids to the table while the model trains.
    return Layer(node.inputs[1:], write, trained=True, again=False)
