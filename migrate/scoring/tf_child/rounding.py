"""The rounding of a graph: by how much its results vary.

The same rows are run again in another order, with the weights and the float inputs an ulp up or
down, at random: the rounding of each value is the largest resulting difference. Whole numbers among
the inputs do not change, since a graph may round, compare or look them up. If the order of the rows
changes a value by more than rounding, the graph depends on it, and the order is kept.
"""

import numpy as np

RUNS = 8
_LARGEST = 1 << 20  # elements of a variable that is moved
_SAME = 1e-3  # relative to the root mean square: more is not rounding


class Rounding:
    """The rounding of the graph in `opened`.

    Args:
        weights: ops of variables; those of floats with no more than a million elements are
            perturbed.
        read, assign: functions of tf and such an op, and for `assign` a value, which return a
            tensor, and an op.
    """

    def __init__(self, opened, weights, read, assign):
        tf = opened._tf
        self._opened = opened
        with opened._graph.as_default():
            moved = [(op, read(tf, op)) for op in weights]
            moved = [(op, value) for op, value in moved if _is_moved(value)]
            self._values = [value for _, value in moved]
            self._given = [tf.placeholder(value.dtype.base_dtype) for value in self._values]
            self._put = [assign(tf, op, given) for (op, _), given in zip(moved, self._given)]

    def largest(self, rows, arrays, run, more, in_order=False):
        """The largest difference of each value, float64, of its shape.

        Args:
            rows, arrays: a batch of `messages`.
            run: a function of the feed and of the order of the rows (None: unchanged) that returns
                a list of values, in the original order of the rows.
            more: further feeds, which are not perturbed.
            in_order: whether the rows keep their order.
        """

        def values(random, order):
            feed = self._opened._feed(rows, self._batch(arrays, random, order))
            feed.update(more)
            return [np.asarray(value, np.float64) for value in run(feed, order)]

        base = values(None, None)
        fixed = in_order or self._opened.batch is not None
        if not fixed:
            # The rows backwards show whether the graph depends on their order.
            turned = values(None, np.arange(rows)[::-1])
            fixed = any(_far(one, other) for one, other in zip(turned, base))
        found = [np.zeros_like(value) for value in base]
        session = self._opened._session
        weights = session.run(self._values)
        try:
            for number in range(RUNS):
                random = np.random.RandomState(number)
                moved = [ulp_apart(value, random) for value in weights]
                session.run(self._put, dict(zip(self._given, moved)))
                again = values(random, None if fixed else random.permutation(rows))
                found = [
                    np.maximum(known, _distance(one, other))
                    for known, one, other in zip(found, again, base)
                ]
        finally:
            session.run(self._put, dict(zip(self._given, weights)))
        return found

    def _batch(self, arrays, random, order):
        """The arrays of a batch in another order, their floats perturbed by an ulp."""
        found = dict(arrays)
        for place in range(len(self._opened.inputs)):
            values, lengths = arrays[str(place)], arrays.get("{}/lengths".format(place))
            if random is not None:
                values = ulp_apart(values, random)
            if order is not None:
                values, lengths = reordered(values, lengths, order)
            found[str(place)] = values
            if lengths is not None:
                found["{}/lengths".format(place)] = lengths
        return found


def ulp_apart(values, random):
    """`values`, with those that are not whole numbers moved by an ulp up or down, or not."""
    if values.dtype.kind != "f":
        return values
    towards = random.choice(np.array([-np.inf, np.inf], values.dtype), values.shape)
    still = (random.randint(0, 3, values.shape) == 0) | (values == np.round(values))
    return np.where(still, values, np.nextafter(values, towards))


def reordered(values, lengths, order):
    """The rows of a column in another order; a dense input has no `lengths`."""
    if lengths is None:
        return values[order], None
    starts = np.cumsum(lengths) - lengths
    parts = [values[starts[row] : starts[row] + lengths[row]] for row in order]
    return np.concatenate(parts), lengths[order]


def _is_moved(value):
    sized = value.shape.is_fully_defined() and value.shape.num_elements() <= _LARGEST
    return sized and value.dtype.base_dtype.name in ("float32", "float64")


def _distance(one, other):
    """0 between values that are the same, NaN and infinities too."""
    with np.errstate(invalid="ignore"):
        distance = np.abs(one - other)
    return np.where((one == other) | ~np.isfinite(distance), 0.0, distance)


def _far(one, other):
    if one.shape != other.shape or not one.size:
        return one.shape != other.shape
    finite = other[np.isfinite(other)]
    scale = np.sqrt(np.mean(finite**2)) if finite.size else 0.0
    return bool(_distance(one, other).max() > _SAME * scale)
