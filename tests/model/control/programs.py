"""Random nestings of branches and loops, as data: what one of them is, and how to draw one.

An expression is a list of its kind and its parts, and gives three floats:

    const c | x | w                       a constant, the fed vector, the variable
    value k                               the k-th that the branches and loops around it have made
    op name a b
    cond predicate a b                    predicate: positive a | counter k below
    while count [start] [next] k          the k-th variable, after so many rounds
    map_fn | scan | foldl | foldr elements start body
    dynamic_rnn elements length body

`elements` are rows: stack [a], of the fed matrix, or numbers of a range. A count is a number, one
of the counters around, or depends on data. `choose` takes a list and returns one of it.
"""

KINDS = ["cond", "while", "map_fn", "scan", "foldl", "foldr", "dynamic_rnn"]
_OPERATORS = ["add", "mul", "sub", "max"]


def draw(choose, depth=3):
    """A program: its expressions, and how it is kept.

    kept: in a checkpoint, "model", or "frozen", or with a training op, whose steps are "trained".
    """
    outputs = [_expression(choose, depth)]
    if choose([False, True]):
        outputs.append(_expression(choose, 1))
    return {
        "outputs": outputs,
        "resource": choose([False, True]),
        "kept": choose(["model", "frozen", "trained"]),
        "gradients": choose([False, True]),
    }


def nestings(part, around=()):
    """The kinds of branches and loops in a program, each with those around it."""
    if isinstance(part, dict):
        part = part["outputs"]
    if not isinstance(part, list):
        return set()
    if part and part[0] in KINDS:
        around = (*around, part[0])
    return {around}.union(*(nestings(one, around) for one in part))


def _expression(choose, depth):
    if depth == 0:
        return _leaf(choose)
    kind = choose([*KINDS, "op"])
    inner = lambda: _expression(choose, depth - 1)  # noqa: E731
    side = lambda: _expression(choose, choose([0, 0, depth - 1]))  # noqa: E731
    if kind == "op":
        return ["op", choose(_OPERATORS), inner(), _leaf(choose)]
    if kind == "cond":
        return ["cond", _predicate(choose, side), inner(), side()]
    if kind == "while":
        starts = [side() for _ in range(choose([1, 2, 3]))]
        following = [inner(), *(side() for _ in starts[1:])]
        return ["while", _count(choose, side), starts, following, choose([0, 0, len(starts)])]
    if kind == "dynamic_rnn":
        return [kind, _elements(choose, side, False), _length(choose), inner()]
    start = None if kind == "map_fn" else choose([None, side()])
    return [kind, _elements(choose, side, start is not None or kind == "map_fn"), start, inner()]


def _leaf(choose):
    kind = choose(["const", "x", "w", "value", "value", "value", "op"])
    if kind == "const":
        return ["const", choose([0.0, 1.0, -0.5, 0.25])]
    if kind == "value":
        return ["value", choose([0, 1, 2, 3, 4])]
    if kind == "op":
        return ["op", choose(_OPERATORS), _leaf(choose), _leaf(choose)]
    return [kind]


def _predicate(choose, side):
    if choose([False, True]):
        return ["positive", side()]
    return ["counter", choose([0, 1]), choose([1, 2])]


def _count(choose, side):
    kind = choose(["number", "counter", "data"])
    if kind == "data":
        return ["data", side()]
    return [kind, choose([0, 1, 2, 3] if kind == "number" else [0, 1])]


def _length(choose):
    kind = choose([None, "number", "counter"])
    return kind and [kind, choose([1, 2])]


def _elements(choose, side, numbers):
    kind = choose(["stack", "fed", "range"] if numbers else ["stack", "fed"])
    if kind == "stack":
        return ["stack", [side() for _ in range(choose([1, 2, 3]))]]
    return [kind, choose([1, 2, 3])]
