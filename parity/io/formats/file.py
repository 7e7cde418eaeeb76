"""The interface of every reader of a file."""

from typing import Collection, Dict, List, Mapping, NamedTuple, Sequence

import pyarrow as pa

from semisync.common.errors import BadInput, MissingColumn


class Columns(NamedTuple):
    """The columns to read, and how where the format does not say."""

    names: Sequence[str]
    optional: Collection[str] = ()  # those that may be absent
    types: Mapping[str, pa.DataType] = {}  # in a text file; without one, as 16 MB suggest
    several: bool = False  # whether a feature of a TFRecord may have any number of values
    lists: Collection[str] = ()  # those of separated values whose fields hold several


def chosen(
    path: str, present: Sequence[str], wanted: Sequence[str], optional: Collection[str] = ()
) -> List[str]:
    """The wanted columns that the file has, once each; refuses a missing or ambiguous one."""
    counts: Dict[str, int] = {name: list(present).count(name) for name in dict.fromkeys(wanted)}
    for name, count in counts.items():
        if count > 1:
            raise BadInput(f"{path} has {count} columns named {name!r}; rename them")
        if not count and name not in optional:
            raise MissingColumn.of(path, name, present)
    return [name for name, count in counts.items() if count]
