"""Which table of one side is which of the other, or which a column of ids looks up."""

import re
from typing import Iterable, Optional


def matching(name: str, tables: Iterable[str]) -> Optional[str]:
    """The table of that name; else the only one that has it as a part of its path.

    `deep/user/embedding_weights` and `deep_user` both match `user`. None where none or several do.
    """
    tables = list(tables)
    if name in tables:
        return name
    flat = _flat(name)
    found = [one for one in tables if _within(flat, _flat(one)) or _within(_flat(one), flat)]
    return found[0] if len(found) == 1 else None


def _flat(name: str) -> str:
    return "_" + re.sub(r"[/.]", "_", name) + "_"


def _within(part: str, whole: str) -> bool:
    return part != "__" and part in whole
