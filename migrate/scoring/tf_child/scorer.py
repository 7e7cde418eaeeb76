"""A TensorFlow model that scores batches."""

import numpy as np

from .graph import depends_on, makes_rows, refuse_unfed, unfed_placeholders
from .messages import Refused, listing
from .opened import Opened


class Scorer(Opened):
    """A model that scores.

    Besides `inputs` it takes all other inputs of the signature and placeholders on which the output
    depends, each from the column of its name.

    Args:
        spec: as of `Opened`, with `output`, its name; None for the only one of the signature.

    Raises:
        Refused, Exception: it is not supported, or TensorFlow raises an error.
    """

    def __init__(self, spec):
        super().__init__(spec)
        self._output = self._named(spec["output"] or _only(self._outputs), self._outputs, "output")
        if not self._output.dtype.is_floating:
            raise Refused(
                "the output {!r} is {}; scores are floating-point numbers".format(
                    self._output.name, self._output.dtype.name
                )
            )
        if self._examples is None:
            self._add_signature()
            self._add_placeholders()
        refuse_unfed(self._output, self._fed() + list(self._constants))

    def _add_signature(self):
        for name in sorted(self._signature or ()):
            one = self._input(name, name, False, self._signature)
            if depends_on(self._output, one.tensors, self._fed() + list(self._constants)):
                self.inputs.append(one)

    def _add_placeholders(self):
        for name, sparse in unfed_placeholders(self._output, self._fed() + list(self._constants)):
            one = self._input(name, name, sparse, None)
            if not sparse and one.tensors[0].shape.ndims == 0:
                raise Refused(
                    "the output {!r} depends on {!r}, which is one value for all rows; give it "
                    "with --feed {}=VALUE".format(self._output.name, name, name)
                )
            self.inputs.append(one)

    @property
    def batch(self):
        """As of `Opened`, or a batch size in the graph's code: the output has that many rows, and a
        reshape makes them from any number."""
        given = super().batch
        shape = self._output.shape.as_list() if self._output.shape.ndims else [None]
        if given is not None or shape[0] is None:
            return given
        return shape[0] if makes_rows(self._output, shape[0], self._fed()) else None

    def answer(self, head, arrays):
        """(head, arrays) of the answer to a batch of `messages`."""
        return {}, [("scores", self.score(head["rows"], arrays))]

    def score(self, rows, arrays):
        """The output for a batch of `messages`; float32 or float64, of the model's own shape."""
        scores = self._session.run(self._output, self._feed(rows, arrays))
        return scores if scores.dtype == np.float64 else scores.astype(np.float32)


def _only(outputs):
    if len(outputs) != 1:
        raise Refused("name one of the outputs with --output: {}".format(listing(outputs)))
    return next(iter(outputs))
