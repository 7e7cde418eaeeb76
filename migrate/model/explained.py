"""What a node's attributes and constants may do to the code that reads them: one sentence.

A foreign graph may have a string where a number belongs, a list that is too short, a constant op
that fails. Handlers, finders of layers and folding do not ask for each; all of them run within
`explained`.
"""

from __future__ import annotations

import contextlib
from typing import Iterator, Optional

from migrate.graph.metagraph import Graph, Node
from semisync.common.errors import BadInput

_UNFIT = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)


@contextlib.contextmanager
def explained(graph: Graph, node: Optional[Node] = None) -> Iterator[None]:
    """Runs what reads `node`, or many of them.

    Raises:
        BadInput: in place of what Python or torch raises of values that do not fit.
    """
    try:
        yield
    except _UNFIT as error:
        told = " ".join(str(error).split())[:200]
        what = "its nodes cannot be converted: they do not fit together"
        if node is not None:
            what = f"the op {node.op} of node {node.name!r} cannot be converted: its attributes or "
            what += "constants do not fit it"
        raise BadInput(f"{graph.path}: {what} ({type(error).__name__}: {told})") from error
