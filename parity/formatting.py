"""How figures and names are written, wherever a sentence, a table or an axis has one.

Differences carry two digits more than the margin has, and a real minus sign. Names are the user's
own and may be of any length.
"""

import math
from typing import Sequence

from semisync.common import sentences

_ROUNDING = 1e-14  # of an AUC in double precision, about

LONGEST_NAME = 60  # letters of a name in a sentence


def signed(value: float, margin: float) -> str:
    """A difference in AUC, with its sign unless it is 0; two digits if it would round to 0."""
    text = f"{value:+.{_digits(margin)}f}"
    if float(text):
        return minus(text)
    return two_digits(value) if abs(value) > _ROUNDING else text[1:]


def plain(value: float, margin: float) -> str:
    """An AUC, with as many digits as `signed` gives."""
    return f"{value:.{_digits(margin)}f}"


def two_digits(value: float) -> str:
    """A difference of another kind, with its sign and two significant digits."""
    return minus(f"{value:+.2g}")


def minus(number: str) -> str:
    """The number with a real minus sign."""
    return number.replace("-", "−")


def percent(share: float) -> str:
    """A share in percent, such as 90% or 97.5%."""
    return f"{100 * share:.6g}%"


def rounded(count: int) -> str:
    """A count, rounded up to two significant digits."""
    scale = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // scale) * scale:,}"


def clipped(text: str, most: int) -> str:
    """The text, of at most so many letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first few names, each clipped, and how many more there are."""
    return sentences.some_of((clipped(name, LONGEST_NAME) for name in names), most)


def _digits(margin: float) -> int:
    return max(4, 2 + math.ceil(-math.log10(margin)))
