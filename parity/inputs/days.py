"""Which day a row is of: that of its moment, where it has one, else the value as it is."""

import re
from typing import Any

import numpy as np

MOMENT = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"  # text, of which the first ten letters are the day


def to_days(days: np.ndarray) -> np.ndarray:
    """(n,): the days of numpy's, pandas' and Python's moments, and of such text, as dates.

    A moment with a time zone is of the day that it has there.
    """
    if days.dtype.kind == "M":
        return days.astype("datetime64[D]")
    if days.dtype.kind == "O" and hasattr(days[0], "hour"):
        return np.array([str(moment)[:10] for moment in days])
    if days.dtype.kind in "OU" and all(map(_is_moment, days.tolist())):
        return np.array([moment[:10] for moment in days.tolist()])
    return days


def _is_moment(value: Any) -> bool:
    return isinstance(value, str) and re.match(MOMENT, value) is not None
