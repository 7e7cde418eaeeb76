"""A schema suggested by the first file of a data set.

in Parquet, ORC, JSON lines and TFRecord:
integers, lists of them                            ids
lists of structs (id, weight), maps from integers  weighted
floating-point numbers, decimals, booleans         dense; fixed-size lists of them too
text; lists of text                                string; strings
in text, where all fields of the first 8 MB are so:
integers, also several                             ids
integers, some with a weight                       weighted
numbers                                            dense
anything else                                      string; strings where the values' separator
                                                   occurs
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Union

import pyarrow as pa

from migrate.data.formats import json_lines, tfrecord
from migrate.data.formats.text import Lines
from migrate.data.listing import COLUMNAR, File, Paths, file_of, files_of
from migrate.data.loading import lines_of
from migrate.data.schema import Column, checked
from migrate.data.values import checked_values
from parity.inputs.checks import Column as Place
from parity.io.columns import is_list, is_text
from parity.io.damage import explained
from parity.io.formats import FORMATS
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput, MissingColumn

_CANDIDATES = ("ids", "weighted", "dense", "numbers")  # of text, the narrowest first


def infer(
    paths: Paths,
    label: Union[str, Sequence[str]] = (),
    key: Union[str, Sequence[str]] = (),
    columns: Optional[Sequence[str]] = None,
    text: Optional[TextFormat] = None,
) -> List[Column]:
    """Suggests the columns of a data set, by the types in its first file.

    Check the suggestion: no file states whether integers are ids or numbers to compute with.
    Reading the data set checks every file against it.

    Args:
        paths, text: as for `open_data`.
        label, key: names of columns that are labels and keys.
        columns: the ones to take; by default all.

    Returns:
        A list of `Column`.

    Raises:
        BadInput: a column is missing, or its type fits no kind.

    Examples:
        >>> from migrate.data import infer
        >>> {column.name: column.kind for column in infer("clicks.parquet", label="clicked")}
        {'user': 'ids', 'city': 'string', 'item': 'ids', 'time': 'ids', 'clicked': 'label'}
    """
    labels = [label] if isinstance(label, str) else list(label)
    keys = [key] if isinstance(key, str) else list(key)
    path, size = next(iter(files_of(paths, text is not None).items()))
    file = file_of(path, size, text)
    names = list(file.names if columns is None else columns)
    for name in [*labels, *keys, *names]:
        if name not in file.names:
            raise MissingColumn.of(path, name, file.names)
    names += [name for name in (*labels, *keys) if name not in names]
    known = {**dict.fromkeys(labels, "label"), **dict.fromkeys(keys, "key")}
    open_ones = [name for name in names if name not in known]
    suggested = {name: Column(name, kind) for name, kind in known.items()}
    with explained(path):
        of = _of_types if file.format in (*COLUMNAR, "tfrecord", "json") else _of_text
        suggested.update((column.name, column) for column in of(file, open_ones, text))
    return checked(suggested[name] for name in names)


def _of_types(file: File, names: Sequence[str], _: Optional[TextFormat]) -> List[Column]:
    if file.format == "tfrecord":
        schema = tfrecord.schema(file.path, file.bounds)
    elif file.format == "json":
        schema, _rows = json_lines.survey(file.path, file.size)
    else:
        schema = FORMATS[file.format](file.path).schema
    return [_of_type(name, schema.field(name).type, file.path) for name in names]


def _of_type(name: str, kind: pa.DataType, path: str) -> Column:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return Column(name, "ids")
    if _is_number(kind):
        return Column(name, "dense")
    if is_text(kind):
        return Column(name, "string")
    if pa.types.is_map(kind) and pa.types.is_integer(kind.key_type):
        return Column(name, "weighted")
    if is_list(kind):
        inner = kind.value_type
        if pa.types.is_struct(inner) and {field.name for field in inner} == {"id", "weight"}:
            return Column(name, "weighted")
        if pa.types.is_integer(inner):
            return Column(name, "ids")
        if is_text(inner):
            return Column(name, "strings")
        if _is_number(inner):
            fixed = pa.types.is_fixed_size_list(kind)
            return Column(name, "dense", width=kind.list_size) if fixed else Column(name, "numbers")
    raise BadInput(
        f"{path}: column {name!r} holds {kind}, which suggests no kind; declare it by a Column, or "
        "leave it out by columns="
    )


def _is_number(kind: pa.DataType) -> bool:
    return any(
        check(kind) for check in (pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    )


def _of_text(file: File, names: Sequence[str], text: Optional[TextFormat]) -> List[Column]:
    lines = lines_of(file, 0, text, 0)
    return [_of_fields(lines, name, file.path) for name in names]


def _of_fields(lines: Lines, name: str, path: str) -> Column:
    strings = lines.column(Column(name, "strings"))
    values = len(strings.flatten())
    if not values:
        raise BadInput(f"{path}: column {name!r} has no value to tell its kind by")
    for kind in _CANDIDATES:
        column = Column(name, kind)
        try:
            checked_values(lines.column(column), column, Place(name, path))
        except BadInput:
            continue
        return column
    return Column(name, "strings" if values > len(strings) else "string")
