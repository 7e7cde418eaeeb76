"""The limits of a simulation's numbers; one outside of them is refused in one sentence."""

import numbers

from semisync.common.errors import UsageError

ANY = 10**12  # the upper limit of numbers without another one; infinity would be no limit


class OutOfRange(UsageError):
    """A number is outside of its limits; `meaning` is its meaning."""

    def __init__(self, meaning, said, value):
        super().__init__("{} is {}, not {!r}".format(meaning, said, value))
        self.meaning = meaning


def within(meaning, value, least, most=ANY):
    """Raises OutOfRange unless `value` is a number from `least` to `most`; NaN is not."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        said = _range("a number", least, most)
        raise OutOfRange(meaning, said, value)


def whole(meaning, value, least, most=ANY):
    """Raises OutOfRange unless `value` is a whole number from `least` to `most`."""
    integral = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not integral or not least <= value <= most:
        said = _range("a whole number", least, most)
        raise OutOfRange(meaning, said, value)


def _range(kind, least, most):
    if most == ANY:
        return "{} of {:,} or more".format(kind, least)
    return "{} from {:,} to {:,}".format(kind, least, most)
