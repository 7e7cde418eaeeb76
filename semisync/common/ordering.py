"""The order of names with numbers in them: day 9 comes before day 10, and part-2 before part-10."""

import re
from typing import Any, Tuple


def by_numbers(name: str) -> Tuple[Any, str]:
    """A key that sorts names as text, but numbers in them by their size."""
    parts = []
    for k, text in enumerate(re.split("([0-9]+)", name)):
        digits = text.lstrip("0") if k % 2 else ""
        # A number of any length: int() refuses more than 4,300 digits.
        parts.append((len(digits), digits) if k % 2 else text)
    return parts, name
