"""An op of a graph that changes a variable outside of any optimizer's Apply ops."""

from collections import namedtuple


class Update(namedtuple("Update", "variable source rate op in_branch dependents kind left_alone")):
    """Tensors are named as in a GraphDef, in functions as `graph_rewrite.graph.functions` says.

    Attributes:
      variable: the name of the variable's op.
      source: the tensor that the variable moves towards, or that is added or assigned. Of a part
        of a partitioned variable that moves: the tensor that the whole one moves towards.
      rate: of a moving average, variable += rate x (source - variable): a float, or the name of a
        tensor where that varies; None of any other.
      op: the name of the op that assigns.
      in_branch: whether that op lies in a branch of a condition.
      dependents: the names of the nodes at the top level that take the op's output or wait for it;
        where it lies in a function, those of the call. A tuple.
      kind: "average"; "debiased", a moving average corrected for its start at zero; "add",
        "subtract", "assign"; "scatter" (some rows only).
      left_alone: why it may not be rewritten, or "".
    """

    __slots__ = ()
