"""A TensorFlow model that scores batches."""

import numpy as np

from .graph import refuse_unfed
from .messages import Refused, listing
from .opened import Opened


class Scorer(Opened):
    """The model that `spec` describes, see `Opened`, with

    output      name of the output; None for the only one of the signature

    Raises: Refused, and whatever TensorFlow does.
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
        refuse_unfed(self._output, self._fed() + list(self._constants))

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
