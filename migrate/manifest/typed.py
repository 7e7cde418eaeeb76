"""Dataclasses and TypedDicts from YAML or JSON that anyone may have edited or damaged."""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing
from functools import lru_cache
from typing import Any, Dict, Mapping, NamedTuple, Type, TypeVar

from semisync.common.errors import BadInput

T = TypeVar("T")

_NUMBER = re.compile(r"[-+]?\d+[eE][-+]?\d+")  # which YAML 1.1 takes for a word


class Key(NamedTuple):
    """A key that a mapping may have: the type of its value, and whether it must be there."""

    hint: Any
    required: bool


def build(kind: Type[T], data: Any, where: str) -> T:
    """Makes the dataclass or TypedDict `kind` of `data`, and checks the type of every field.

    Raises:
        BadInput: one is wrong; the message begins with `where` and names the field.
    """
    return kind(**checked(keys_of(kind), data, where, kind.__name__))


def keys_of(kind: Any) -> Mapping[str, Key]:
    """The fields of the dataclass or TypedDict `kind`."""
    return _keys_of(kind)


@lru_cache(maxsize=None)
def _keys_of(kind: Any) -> Mapping[str, Key]:
    hints = typing.get_type_hints(kind)
    if typing.is_typeddict(kind):
        return {name: Key(hint, name in kind.__required_keys__) for name, hint in hints.items()}
    missing = dataclasses.MISSING
    return {
        field_.name: Key(
            hints[field_.name], field_.default is missing and field_.default_factory is missing
        )
        for field_ in dataclasses.fields(kind)
    }


def checked(keys: Mapping[str, Key], data: Any, where: str, record: str) -> Dict[str, Any]:
    """The mapping `data`, its values checked against `keys`; else BadInput as of `build`.

    Args:
        record: the described thing, for messages.
    """
    if not isinstance(data, dict):
        raise BadInput(f"{where}: expected the fields of a {record}, found {data!r:.80}")
    unknown = sorted(map(str, set(data) - set(keys)))
    if unknown:
        near = difflib.get_close_matches(unknown[0], keys, 1)
        meant = f" (meant is {near[0]!r}?)" if near else ""
        raise BadInput(f"{where}: unknown field {unknown[0]!r}{meant}, known are {', '.join(keys)}")
    values = {
        name: _value(keys[name].hint, value, f"{where}: {name}") for name, value in data.items()
    }
    lacks = [name for name, key in keys.items() if key.required and name not in values]
    if lacks:
        raise BadInput(f"{where}: a {record} lacks {', '.join(lacks)}")
    return values


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` checked against the type `hint` of a dataclass's field."""
    if hint is Any:
        return value
    inner = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin is list and isinstance(value, list):
        return [_value(inner[0], entry, f"{where}[{index}]") for index, entry in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {
            _value(inner[0], key, where): _value(inner[1], entry, f"{where}[{key!r}]")
            for key, entry in value.items()
        }
    if origin is typing.Union:
        # The exact type decides, or a bool would pass as an int.
        kinds = [kind for kind in inner if type(value) is kind] or inner
        return None if value is None else _value(kinds[0], value, where)
    if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
        return build(hint, value, where)
    if hint is float and type(value) is int:
        return float(value)
    if hint is float and isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    if hint is str and isinstance(value, str) and not _is_text(value):
        raise BadInput(f"{where}: {value!r:.80} has a character that no file can hold")
    if origin is None and type(value) is hint:
        return value
    raise BadInput(f"{where}: expected {getattr(hint, '__name__', hint)}, found {value!r:.80}")


def _is_text(value: str) -> bool:
    """Whether it can stand in paths and UTF-8: YAML and JSON escape NUL and lone surrogates."""
    return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
