"""Dataclasses from what YAML or JSON holds, which anybody may have edited or damaged."""

from __future__ import annotations

import dataclasses
import typing
from functools import lru_cache
from typing import Any, Dict, List, Type, TypeVar

from semisync.common.errors import BadInput

T = TypeVar("T")


def build(kind: Type[T], data: Any, where: str) -> T:
    """`data` as the dataclass `kind`, with the type of every field checked; else BadInput, which
    begins with `where` and names the field."""
    if not isinstance(data, dict):
        raise BadInput(f"{where}: expected the fields of a {kind.__name__}, found {data!r:.80}")
    hints = _hints(kind)  # type: ignore[arg-type]
    unknown = sorted(map(str, set(data) - set(hints)))
    if unknown:
        raise BadInput(f"{where}: unknown field {unknown[0]!r}, known are {', '.join(hints)}")
    values = {name: _value(hints[name], value, f"{where}: {name}") for name, value in data.items()}
    lacks = [name for name in _required(kind) if name not in values]
    if lacks:
        raise BadInput(f"{where}: a {kind.__name__} lacks {', '.join(lacks)}")
    return kind(**values)


@lru_cache(maxsize=None)
def _hints(kind: Any) -> Dict[str, Any]:
    return typing.get_type_hints(kind)  # parses the text of annotations each time


def _required(kind: Any) -> List[str]:
    missing = dataclasses.MISSING
    return [
        one.name
        for one in dataclasses.fields(kind)
        if one.default is missing and one.default_factory is missing
    ]


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` checked against the type `hint` of a dataclass's field."""
    if hint is Any:
        return value
    inner = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin is list and isinstance(value, list):
        return [_value(inner[0], one, f"{where}[{index}]") for index, one in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {
            _value(inner[0], key, where): _value(inner[1], one, f"{where}[{key!r}]")
            for key, one in value.items()
        }
    if origin is typing.Union:
        return None if value is None else _value(inner[0], value, where)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return build(hint, value, where)
    if hint is float and type(value) is int:
        return float(value)
    if hint is str and isinstance(value, str) and not _is_text(value):
        raise BadInput(f"{where}: {value!r:.80} has a character that no file can hold")
    if origin is None and type(value) is hint:
        return value
    raise BadInput(f"{where}: expected {getattr(hint, '__name__', hint)}, found {value!r:.80}")


def _is_text(value: str) -> bool:
    """Whether it can stand in paths and UTF-8: YAML and JSON escape NUL and lone surrogates."""
    return "\0" not in value and not any("\ud800" <= one <= "\udfff" for one in value)
