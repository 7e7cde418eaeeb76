"""Where a training graph takes its rows from by itself: such an op must be fed instead.

An iterator that nobody has initialized fails in a message of many lines, a queue that nobody fills
waits for ever, and one that does work would score other rows than those of the data.
"""

from .refused import Refused, listing, sizes

_KINDS = {"Iterator": "an iterator", "Queue": "a queue", "Reader": "a reader"}


def refuse_unfed(output, fed):
    """Raises Refused where `output` depends on rows of the graph's own.

    Args:
      output: a tensor.
      fed: the tensors that are fed.
    """
    fed = {tensor.name for tensor in fed}
    seen, own = set(), []
    waiting = [] if output.name in fed else [output]
    while waiting:
        tensor = waiting.pop()
        kind = _kind(tensor.op)
        if kind is not None:
            own.append((kind, tensor.op.name, tensor.name))
        ops = [tensor.op]
        while ops:
            op = ops.pop()
            if op.name not in seen:
                seen.add(op.name)
                ops += op.control_inputs
                waiting += [one for one in op.inputs if one.name not in fed]
    if own:
        kind, name, _ = own[0]
        names = {tensor for _, op, tensor in own if op == name}
        tensors = map(output.graph.get_tensor_by_name, names)
        raise Refused(
            "the output {!r} takes its rows from {}, {!r}; feed its tensors with --input "
            "COL=TENSOR: {}".format(output.name, kind, name, listing(map(_described, tensors)))
        )


def _kind(op):
    if op.type.startswith(("IteratorGetNext", "QueueDequeue", "ReaderRead")):
        return next(words for start, words in _KINDS.items() if op.type.startswith(start))
    return None


def _described(tensor):
    shape = "of any shape" if tensor.shape.ndims is None else sizes(tensor.shape.as_list())
    return "{} ({} {})".format(tensor.name, tensor.dtype.name, shape)
