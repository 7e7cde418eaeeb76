"""Shell completion of a command: its words and options, and files where it takes some.

shtab writes the shell's own script of an argparse parser, so that no Python starts at a press of
the key. An option's kind of value is its metavar's, which says the same in each command.
"""

import argparse

from semisync.common.extras import extra

SHELLS = ("bash", "fish", "zsh")
_FILES = {
    "BASELINE", "CANDIDATE", "CHECKPOINT", "CONFIG", "DATA", "FILE", "IN.meta", "MODEL", "OUT",
    "OUT.meta", "PATH", "PREFIX", "PYTHON", "RECORD",
}  # fmt: skip
_FOLDERS = {"DIR"}


def completion(parser, shell):
    """The script of a command whose parser has all of its subcommands.

    Args:
        shell: one of SHELLS.

    Raises:
        MissingExtra: shtab is not installed.
    """
    with extra("completion", "to write a shell's completion"):
        import shtab
    for action in _actions(parser):
        if action.metavar in _FILES:
            action.complete = shtab.FILE
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY
    return shtab.complete(parser, shell)


def _actions(parser):
    """The completions of a parser and of its subcommands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _actions(subparser)
