"""The record of a verification of a converted model, as evidence beside the scores.

`semisync verify PREFIX OUT --json` compares a converted model with its checkpoint. Only a record of
a complete one that passed is of use here: every row of every table and every dense value compared,
not a sample, and every SHA-256. Rare faults of the conversion are excluded then, whatever the
number of rows scored. The code that computes scores from the values is not: the scores alone test
that.
"""

import os
from typing import Any, Mapping, NamedTuple, Union

from semisync.common import json_text
from semisync.common.errors import BadInput

SCHEMA = "semisync.verification/1"
Record = Union[str, "os.PathLike[str]", Mapping[str, Any]]


class Verified(NamedTuple):
    """The verified pair: `source`, a checkpoint, and `directory`, what it was converted to."""

    source: str
    directory: str
    tensors: int
    rows: int
    hashes: int  # SHA-256 that agree


def read_record(record: Record) -> Verified:
    """Checks a record.

    Args:
        record: the output of `semisync verify --json`: its path, or as a mapping.

    Raises:
        BadInput: anything else, or a record of a sample or of a model that differs.
    """
    if isinstance(record, Mapping):
        return _checked(record, "the record of the verification")
    path = os.fspath(record)
    try:
        data = json_text.read(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}; {_EXPECTED}") from error
    except ValueError as error:
        raise BadInput(f"{path} is not JSON; {_EXPECTED}") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} is not a record of a verification; {_EXPECTED}")
    return _checked(data, path)


def _checked(data: Mapping[str, Any], name: str) -> Verified:
    if data.get("schema") != SCHEMA:
        raise BadInput(f"{name} has the schema {data.get('schema')!r}, not {SCHEMA!r}; {_EXPECTED}")
    counts = {key: data.get(key) for key in ("tensors", "rows", "hashes", "differing_rows")}
    for key, value in counts.items():
        if type(value) is not int or value < 0:  # a bool is an int by isinstance
            raise BadInput(f"{name} has {value!r} for {key!r}, not a count; {_EXPECTED}")
    differences = data.get("differences")
    if data.get("verified") is not True or differences != [] or counts["differing_rows"]:
        first = f": {differences[0]}" if isinstance(differences, list) and differences else ""
        raise BadInput(
            f"{name} is of a verification that did not pass{first}; convert again, and verify"
        )
    if "sample" not in data or data["sample"] is not None:
        raise BadInput(
            f"{name} is of a sample of {data.get('sample')} rows of each tensor, which misses rare "
            "faults as well; verify without --sample"
        )
    for key in ("tensors", "rows", "hashes"):
        if not counts[key]:
            raise BadInput(f"{name} is of a verification of 0 {key}; {_EXPECTED}")
    return Verified(
        str(data.get("source")),
        str(data.get("directory")),
        *(int(data[key]) for key in ("tensors", "rows", "hashes")),
    )


_EXPECTED = "the output of `semisync verify PREFIX OUT --json` is expected"
