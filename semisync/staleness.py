"""Staleness policies: how much a batch counts when it is applied late.

The staleness of a batch is the global step at which it is applied, minus its token (the global
step at which its parameters were read): 0, 1, 2, ...; `semisync.chief.ledger` computes it. A
policy maps it to a weight in [0, 1]. Any callable that maps a float32 tensor of stalenesses to a
float32 tensor of weights of the same shape is a policy; None counts every batch fully. A weight of
0 must be final: if a staleness has weight 0, so has every larger one, since a worker does not send
batches already too stale.

    Threshold(n)        1 up to n, then 0              GBA, arXiv 2205.11048
    Inverse()           1 / max(s, 1)                  Zhang et al., IJCAI 2016, arXiv 1511.05950
    Polynomial(a)       (s + 1)^-a                     FedAsync, arXiv 1903.03934
    Hinge(a, b)         1 up to b, then 1 / (a (s - b) + 1)     the same
    Exponential(a)      exp(-a s)
"""

import numbers
from typing import Any, NamedTuple

import numpy as np

from semisync.common.errors import UsageError

PROBES = list(range(17)) + [32, 64, 128, 1024]  # stalenesses at which policies are compared


class _Math(NamedTuple):
    """Functions that a formula needs beside arithmetic; `counts` turns a condition into 1 and 0."""

    maximum: Any
    exp: Any
    counts: Any


def _math(staleness):
    """numpy's for an array; TensorFlow's, which is imported only then, for a tensor."""
    if isinstance(staleness, np.ndarray):
        return _Math(np.maximum, np.exp, lambda condition: condition.astype(np.float32))
    from semisync.common.compat import tf

    return _Math(tf.maximum, tf.exp, lambda condition: tf.cast(condition, tf.float32))


class _Formula:
    """A policy whose weights depend on the staleness alone: a float32 tensor, or a numpy array.

    Attributes:
        may_reject: whether a staleness can have the weight 0.
    """

    may_reject = False


class Threshold(_Formula):
    """Weight 1 up to `bound` steps of staleness, 0 beyond it.

    Args:
        bound: the largest staleness, in global steps, that still counts. 0 admits only gradients
            of the current parameters.

    Raises:
        UsageError: the bound is not a whole number >= 0.

    Examples:
        >>> semisync.Threshold(4)(np.float32([0, 4, 5]))
        array([1., 1., 0.], dtype=float32)
    """

    may_reject = True

    def __init__(self, bound):
        if isinstance(bound, bool) or not isinstance(bound, numbers.Integral) or bound < 0:
            raise UsageError(
                "Threshold takes a whole number of global steps, 0 or more, not {!r}".format(bound)
            )
        self.bound = int(bound)

    def __call__(self, staleness):
        return _math(staleness).counts(staleness <= float(self.bound))

    def __repr__(self):
        return "Threshold({})".format(self.bound)


class Inverse(_Formula):
    """Weight 1 / staleness, and 1 for a batch that is not late.

    Examples:
        >>> semisync.Inverse()(np.float32([0, 1, 2, 4]))
        array([1.  , 1.  , 0.5 , 0.25], dtype=float32)
    """

    def __call__(self, staleness):
        return 1.0 / _math(staleness).maximum(staleness, 1.0)

    def __repr__(self):
        return "Inverse()"


class Polynomial(_Formula):
    """Weight (staleness + 1) ** -power.

    Args:
        power: >= 0; 0.5 is FedAsync's own.

    Raises:
        UsageError: the power is not a number >= 0.

    Examples:
        >>> semisync.Polynomial(0.5)(np.float32([0, 3, 8]))
        array([1.        , 0.5       , 0.33333334], dtype=float32)
    """

    def __init__(self, power=0.5):
        self.power = _not_negative("Polynomial", power)

    def __call__(self, staleness):
        return (staleness + 1.0) ** -self.power

    def __repr__(self):
        return "Polynomial({})".format(self.power)


class Hinge(_Formula):
    """Weight 1 up to `bound` steps of staleness, 1 / (slope * (staleness - bound) + 1) beyond it.

    Args:
        slope: >= 0, per global step.
        bound: in global steps, >= 0.

    Raises:
        UsageError: an argument is not a number >= 0.

    Examples:
        >>> semisync.Hinge(1, 2)(np.float32([2, 3, 5]))
        array([1.  , 0.5 , 0.25], dtype=float32)
    """

    def __init__(self, slope, bound):
        self.slope = _not_negative("Hinge", slope)
        self.bound = _not_negative("Hinge", bound)

    def __call__(self, staleness):
        return 1.0 / (self.slope * _math(staleness).maximum(staleness - self.bound, 0.0) + 1.0)

    def __repr__(self):
        return "Hinge({}, {})".format(self.slope, self.bound)


class Exponential(_Formula):
    """Weight exp(-rate * staleness).

    Args:
        rate: decay per global step, >= 0.

    Raises:
        UsageError: the rate is not a number >= 0.

    Examples:
        >>> semisync.Exponential(0.5)(np.float32([0, 1, 2])).round(3)
        array([1.   , 0.607, 0.368], dtype=float32)
    """

    def __init__(self, rate):
        self.rate = _not_negative("Exponential", rate)

    def __call__(self, staleness):
        return _math(staleness).exp(-self.rate * staleness)

    def __repr__(self):
        return "Exponential({})".format(self.rate)


def weights_of(staleness_policy, staleness):
    """The weights of stalenesses by a staleness policy, or None; both float32 tensors [n].

    Raises:
        UsageError: the policy returns another shape.
    """
    from semisync.common.compat import tf

    weights = tf.cast((staleness_policy or tf.ones_like)(staleness), tf.float32)
    if not weights.shape.is_compatible_with(staleness.shape):
        raise UsageError(
            "staleness: the policy returns weights of shape {} for stalenesses of shape {}: return "
            "one weight per staleness".format(weights.shape, staleness.shape)
        )
    return weights


def is_formula(staleness_policy):
    """True for None and the policies of this module: their weights depend on staleness alone."""
    return staleness_policy is None or isinstance(staleness_policy, _Formula)


def may_reject(staleness_policy):
    """False when no batch has weight 0, however stale."""
    return staleness_policy is not None and getattr(staleness_policy, "may_reject", True)


def fresh_steps(weights):
    """The usual number of global steps in which a batch stays fresh enough to count.

    Args:
        weights: the staleness policy's at PROBES.
    """
    return max((staleness for staleness, weight in zip(PROBES, weights) if weight > 0), default=0)


def _not_negative(name, number):
    valid = isinstance(number, numbers.Real) and not isinstance(number, bool)
    if not valid or not 0 <= number < float("inf"):
        raise UsageError("{} takes numbers of 0 or more, not {!r}".format(name, number))
    return float(number)
