"""The available plug-ins: those that are installed, and those that the caller names.

The names stand in an environment variable, so that the processes that a command starts have the
same ones.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.metadata
import importlib.util
import os
from types import ModuleType
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from semisync.common.errors import BadInput, UsageError

GROUP = "semisync.servers"  # of entry points
VARIABLE = "SEMISYNC_PLUGINS"  # names of modules or paths of their files, with commas between

_FUNCTIONS = ("read_tables", "look_up", "train")


class Plugin(NamedTuple):
    """A module that has some of the functions."""

    name: str
    module: ModuleType

    def ask(self, function: str, *given: Any, about: str) -> Any:
        """The result of a function of the module; None if the module lacks it.

        Args:
            about: what it is asked about, for the BadInput if it fails.
        """
        asked: Optional[Callable] = getattr(self.module, function, None)
        if asked is None:
            return None
        try:
            return asked(*given)
        except BadInput:
            raise
        except Exception as error:
            raise self.failed(function, about, error) from error

    def failed(self, function: str, about: str, error: object) -> BadInput:
        """The error for an answer of the plug-in that cannot be used."""
        what = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else error
        return BadInput(f"{about}: {function} of the plug-in {self.name!r}: {what}")


def add_plugins(group: Any) -> None:
    """The option --plugin, of a parser or a group, which takes effect as it is read."""
    group.add_argument(
        "--plugin",
        metavar="MODULE",
        action=_Name,
        help="plug-in for your own parameter server, a module or its file; see docs/servers.md",
    )


class _Name(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, value: Any, option: Any = None) -> None:
        named = [name for name in os.environ.get(VARIABLE, "").split(",") if name]
        # Absolute: a process that is started may have another working directory.
        path = os.path.abspath(value) if value.endswith(".py") else value
        os.environ[VARIABLE] = ",".join(dict.fromkeys([*named, path]))


def plugins() -> Tuple[Plugin, ...]:
    """All plug-ins; raises UsageError if one cannot be imported or has none of the functions."""
    return _plugins(os.environ.get(VARIABLE, ""))


# By the variable's text: --plugin changes it, and a module's file is run once.
@functools.lru_cache(maxsize=8)
def _plugins(named: str) -> Tuple[Plugin, ...]:
    found: Dict[str, Plugin] = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        found[point.name] = _checked(point.name, point.load)
    for name in filter(None, named.split(",")):
        found[name] = _checked(_stem(name), functools.partial(_import, name))
    return tuple(found.values())


def _checked(name: str, load: Callable[[], ModuleType]) -> Plugin:
    try:
        module = load()
    except Exception as error:
        raise UsageError(
            f"the plug-in {name!r} cannot be imported ({type(error).__name__}: {error}); --plugin "
            "takes a module that is installed, or the path of a .py file"
        ) from error
    if not any(callable(getattr(module, function, None)) for function in _FUNCTIONS):
        raise UsageError(f"the plug-in {name!r} has none of the functions {', '.join(_FUNCTIONS)}")
    return Plugin(name, module)


def _import(name: str) -> ModuleType:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(_stem(name), name)
    assert spec is not None and spec.loader is not None, name
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _stem(name: str) -> str:
    return os.path.splitext(os.path.basename(name))[0] if name.endswith(".py") else name
