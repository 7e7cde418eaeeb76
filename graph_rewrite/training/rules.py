"""Optimizers that compute with a gradient before they apply it.

An Optimizer builds what it does to a variable in a name scope of its own, "update_" + VARIABLE.
What of a batch comes into that scope is the gradient; what is made of it there is the rule by which
the optimizer trains, such as a sign, LARS's ratio of norms, or Adafactor's slots. So the global
batch's gradient is put in at the border of the scope.
"""

import re
from typing import Dict, Tuple

from graph_rewrite.graph.index import CONTROL, join, split
from graph_rewrite.training.places import Place
from semisync.common.compat import tf
from semisync.common.errors import BadInput

_SCOPE = "update_"  # before the name of the variable
_IDS = (tf.int32.as_datatype_enum, tf.int64.as_datatype_enum)


class Rules:
    """The rules of one graph.

    Args:
      nodes, kinds: the graph's `Nodes` and `OpKinds`.
      fed: names of the nodes whose values depend on a batch, a set.
      written: {name of an op that writes: name of its variable}.
    """

    def __init__(self, nodes, kinds, fed, written):
        self._nodes, self._kinds, self._fed, self._written = nodes, kinds, fed, written

    def inner(self, update):
        """The scope within which the gradient of an `Update` is made, or None."""
        maker, variable = split(update.values)[0], update.variable.name
        if _SCOPE + variable not in maker:  # most are made elsewhere
            return None
        scope = _scope(update.ops[0], variable)
        return scope if scope and maker.startswith(scope) else None

    def whole(self, update):
        """An `Update` with the gradient that comes into its scope, if it is made within.

        Raises:
          BadInput: more than a gradient comes into it.
        """
        scope = self.inner(update)
        if scope is None:
            return update

        def inside(names):
            return [name for name in names if name in self._fed and name.startswith(scope)]

        above = self._nodes.reachable(
            update.ops, lambda node: inside(split(tensor)[0] for tensor in node.input)
        )
        gradient = self._gradient(update, scope, above)
        places = [
            Place(use.node.name, use.input, what)
            for what, (name, output) in gradient.items()
            for use in self._nodes.uses(name)
            if use.output == output and use.node.name.startswith(scope)
        ]
        below = self._nodes.reachable(
            [place.node for place in places], lambda node: inside(self._nodes.users(node.name))
        )
        slots = sorted(below.intersection(self._written).difference(update.ops))
        tensors = {what: join(*tensor) for what, tensor in gradient.items()}
        return update._replace(
            ops=update.ops + slots,
            values=tensors["values"],
            indices=tensors.get("indices"),
            places=places,
        )

    def _gradient(self, update, scope, above):
        """{"values": (op, output), perhaps "indices": the same} of what ops within a scope take."""
        found: Dict[str, Tuple[str, int]] = {}
        taken = {split(tensor) for name in above for tensor in self._nodes[name].input}
        for name, output in sorted(taken):
            if output == CONTROL or name not in self._fed or name.startswith(scope):
                continue
            kind = self._kinds.output_types(self._nodes[name])[output]
            other = found.setdefault("indices" if kind in _IDS else "values", (name, output))
            if other != (name, output):
                raise BadInput(
                    "the op {} trains {} by a rule that takes {} and {} of a batch, more than a "
                    "gradient: make the other a variable or a function of the global step".format(
                        update.ops[0], update.variable.name, join(*other), join(name, output)
                    )
                )
        return found

    def others(self, updates, found):
        """Those of `updates` in whose scope none of `found` is, one for each scope."""
        scopes = {_scope(op, u.variable.name) for u in found for op in u.ops} if updates else set()
        for update in updates:
            scope = self.inner(update)
            if scope not in scopes:
                scopes.add(scope)
                yield self.whole(update)


def _scope(op, variable):
    """The name scope of an op in which an Optimizer updates a variable, or None."""
    found = re.match(r"(.*/)?{}(_\d+)?/".format(re.escape(_SCOPE + variable)), op)
    return found.group() if found else None
