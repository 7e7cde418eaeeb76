"""The command line of a benchmark: the docstring of its module, and options by their defaults."""

import argparse
from typing import NamedTuple, Sequence


class AnyOf(NamedTuple):
    """Names from which an option takes some, by default all."""

    names: Sequence
    default: Sequence = ()


def options(about, *positional, **defaults):
    """The arguments, which may be pickled.

    Args:
        about: the module's docstring, which --help prints.
        positional: names of the positional arguments.
        defaults: by name. False is a switch; a list takes values of its first one's type; a type
            takes a value, None without it.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in positional:
        parser.add_argument(name)
    for name, default in defaults.items():
        option = "--" + name.replace("_", "-")
        if default is False:
            parser.add_argument(option, action="store_true")
        elif isinstance(default, type):
            parser.add_argument(option, type=default)
        elif isinstance(default, AnyOf):
            names = list(default.names)
            parser.add_argument(option, nargs="*", choices=names, default=default.default or names)
        elif isinstance(default, (list, tuple)):
            kind = type(default[0]) if default else str
            parser.add_argument(option, nargs="*", type=kind, default=default)
        else:
            parser.add_argument(option, type=type(default), default=default)
    return parser.parse_args()


def refuse(sentence):
    """Ends the program because its arguments make no sense."""
    argparse.ArgumentParser().error(sentence)
