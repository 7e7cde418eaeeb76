"""The `semisync` command: its subcommands, each importing only what it needs.

A subcommand is a module of semisync.commands with two functions:

    configure(parser)   declares its arguments, --json among them; imports nothing heavy
    run(args) -> int    does the work, gives its answer and returns the exit code

semisync.answers says what --json does, semisync.common.exit_codes lists the codes. Bad input
ends with one sentence on stderr and no traceback. An unexpected error ends with INTERNAL_ERROR, a
sentence that says what was being read and where to report it, and the traceback below that: a
crash is not an answer.
"""

import argparse
import difflib
import glob
import importlib
import os
import sys
from typing import Any, Iterator, List, NamedTuple, NoReturn, Optional, Tuple

from semisync import answers
from semisync.common import exit_codes
from semisync.common.errors import MissingExtra, SemisyncError, Several
from semisync.common.extras import not_installed
from semisync.common.sentences import words_of
from semisync.common.terminal import say, say_traceback, shown
from semisync.completion import SHELLS, completion

BROKEN_PIPE = 141  # a shell's exit status of a process that SIGPIPE ended


class Subcommand(NamedTuple):
    """A subcommand: its line in the list of commands, the extra that it needs, and the oldest
    Python that the extra's packages support (torch 2.13 and torchrec 1.8: 3.10)."""

    help: str
    extra: str
    python: Tuple[int, int] = (3, 10)


SUBCOMMANDS = {
    "demo": Subcommand("train, convert and compare, in one go", "tf,torch,report"),
    "migrate": Subcommand(
        "convert a model, compare it with TensorFlow's, and write one report", "torch,report"
    ),
    "rewrite": Subcommand("make an exported training graph semi-synchronous", "tf", (3, 7)),
    "simulate": Subcommand("foresee a cluster's pace and staleness", "", (3, 7)),
    "inspect": Subcommand("list what a TF checkpoint holds", "files"),
    "convert": Subcommand("turn a TF checkpoint into one for TorchRec", "torch"),
    "train": Subcommand("train on in torch where a TF job stopped", "torch"),
    "sequence": Subcommand("train a model of users' sequences, and write vectors", "torch"),
    "verify": Subcommand("compare what convert wrote with its checkpoint", "torch"),
    "score": Subcommand("run a model over a data set: key, label, score", "report"),
    "launch": Subcommand(
        "start a job's processes, on one machine or many, and end them with it",
        "zookeeper",
        (3, 7),
    ),
    "config": Subcommand(
        "change the configuration of a job while it runs, or show it", "zookeeper", (3, 7)
    ),
    "status": Subcommand(
        "show who leads, who is missing, and how the training goes", "zookeeper", (3, 7)
    ),
    "parity": Subcommand("compare the AUC of two models: equivalent or not?", "report"),
}

_IN_TORCH = {"demo", "migrate", "convert", "train", "sequence", "verify", "score"}
_COMPLETION = "--print-completion"
_OWN = {"semisync", "graph_rewrite", "migrate", "parity"}
_WITHOUT_CUDA = (
    "on a machine without CUDA its CPU build takes its place: "
    "pip uninstall fbgemm-gpu, then pip install --no-deps fbgemm-gpu-cpu"
)


class _Parser(argparse.ArgumentParser):
    """argparse, except that a usage error ends with BAD_INPUT like every other bad input and names
    what was nearly written, the usage has what is required alone, and the help ends with the
    epilog of `configure`, verbatim, and the exit codes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        self._given: List[str] = []

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = list(args or ())
        return super().parse_known_args(args, namespace)

    def format_usage(self) -> str:
        self.usage = self._required()
        return super().format_usage()

    def format_help(self) -> str:
        self.usage = self._required()
        return f"{super().format_help()}\n{exit_codes.listing()}\n"

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(exit_codes.BAD_INPUT, shown(f"{self.prog}: {message}{self._meant()}") + "\n")

    def _required(self) -> str:
        """The usage, with the required arguments alone: the list of options has the others."""
        groups = [group for group in self._mutually_exclusive_groups if group.required]
        either = [action for group in groups for action in group._group_actions]
        needed = [one for one in self._actions if one.required or not one.option_strings]
        needed += [action for action in either if action not in needed]
        formatter = self._get_formatter()
        formatter.add_usage(None, needed, groups, prefix="")
        text = formatter.format_help().strip()
        # argparse formats a given usage by %.
        return f"{self.prog} [options]{text[len(self.prog) :]}".replace("%", "%%")

    def _meant(self) -> str:
        """The known option or command nearest to the first unknown one."""
        choices = [choice for action in self._actions for choice in action.choices or ()]
        for word in self._given:
            name = word.partition("=")[0]
            option = name.startswith("--")
            known = list(self._option_string_actions) if option else choices
            if not any(one.startswith(name) for one in known):
                for near in difflib.get_close_matches(name, known, 1):
                    return f"; did you mean {near}?"
        return ""


class _PrintVersion(argparse.Action):
    """Prints the version, which is read for this alone."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from semisync.common.distribution import version

        say(f"semisync {version()}, Python {sys.version.split()[0]}")
        parser.exit()


class _PrintCompletion(argparse.Action):
    """Writes the shell's script, for which all commands declare their arguments."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, shell: Any, *__: Any) -> NoReturn:
        try:
            script = completion(_whole_parser(), shell)
        except MissingExtra as error:
            parser.exit(exit_codes.BAD_INPUT, shown(f"semisync: {error}") + "\n")
        say(*script.splitlines())
        parser.exit()


def module_of(name: str) -> Any:
    """The module of one subcommand."""
    return importlib.import_module(f"semisync.commands.{name}")


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of one subcommand."""
    parser = _Parser(prog=f"semisync {name}", description=SUBCOMMANDS[name].help)
    module_of(name).configure(parser)
    return parser


def _whole_parser() -> argparse.ArgumentParser:
    """The command with all subcommands that this Python runs."""
    parser = _Parser(prog="semisync")
    _add_options(parser)
    commands = parser.add_subparsers(dest="command")
    for name, one in SUBCOMMANDS.items():
        if sys.version_info >= one.python:
            subparser = commands.add_parser(name, help=one.help, description=one.help)
            module_of(name).configure(subparser)
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print it and end")
    parser.add_argument(
        _COMPLETION,
        metavar="SHELL",
        action=_PrintCompletion,
        choices=SHELLS,
        help=f"print the script that completes a command's words in {', '.join(SHELLS)}",
    )


def _top_parser() -> argparse.ArgumentParser:
    width = max(map(len, SUBCOMMANDS))
    listing = "\n".join(f"  {name:<{width}}  {sub.help}" for name, sub in SUBCOMMANDS.items())
    parser = _Parser(
        prog="semisync",
        description="Semi-synchronous training for TensorFlow parameter servers, and a proven "
        "way to TorchRec.",
        epilog=f"commands:\n{listing}\n\n`semisync COMMAND --help` explains each, with examples.",
    )
    _add_options(parser)
    parser.add_argument("command", choices=SUBCOMMANDS, metavar="COMMAND", help="see below")
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Runs one subcommand; returns its exit code. `argv` defaults to the process's own."""
    argv = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:  # the parent process closed it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if not argv:
        say(*_top_parser().format_help().splitlines(), error=True)
        return exit_codes.BAD_INPUT
    name = _top_parser().parse_args(argv[: 2 if argv[0] == _COMPLETION else 1]).command
    subcommand = SUBCOMMANDS[name]
    args = argparse.Namespace()
    if name in _IN_TORCH:
        # Else OpenMP's threads spin while they wait for one that does not get a processor.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if sys.version_info < subcommand.python:
        return _fail(name, SemisyncError(_too_old(subcommand.python)))
    try:
        module = module_of(name)
        parser_of(name).parse_args(argv[1:], args)
        with answers.apart(args.json):
            code = module.run(args)
        sys.stdout.flush()
        return code
    except SemisyncError as error:
        return _fail(name, error)
    except BrokenPipeError:  # the reader of our output has gone, such as `head`
        _drop_output()
        return BROKEN_PIPE
    except OSError as error:  # no room, no permission, no such folder
        return _fail(name, SemisyncError(_of_the_system(error)))
    except MemoryError as error:
        return _fail(name, SemisyncError(_too_large(args, error)))
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in _OWN:
            return _crash(name, args, error)
        return _fail(name, MissingExtra(not_installed(error.name, subcommand.extra)))
    except Exception as error:  # a defect
        return _crash(name, args, error)


def _too_old(oldest: Tuple[int, int]) -> str:
    wanted, found = (".".join(map(str, version)) for version in (oldest, sys.version_info[:2]))
    return f"needs Python {wanted} or later, and this is Python {found}; run it with a later one"


def _of_the_system(error: OSError) -> str:
    """The file and the system's words; the error of a library that does not load has neither."""
    if error.strerror is not None:
        return f"{_place_of(error)}: {error.strerror}"
    said = f"{error} ({error.__cause__})" if error.__cause__ else str(error)
    return f"{said}; {_WITHOUT_CUDA}" if "fbgemm_gpu" in said else said


def _place_of(error: OSError) -> str:
    """The file that failed; the standard output when that still fails."""
    if error.filename is not None:
        return str(error.filename)
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
        return "the standard output"
    return "the system"


def _drop_output() -> None:
    """Discards the rest of the output, which Python would write when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(name: str, error: SemisyncError) -> int:
    for one in error.errors if isinstance(error, Several) else [error]:
        _say(name, str(one))
    return exit_codes.BAD_INPUT


def _crash(name: str, args: argparse.Namespace, error: Exception) -> int:
    _say(name, _sentence(args, error))
    say_traceback(error)
    return exit_codes.INTERNAL_ERROR


def _too_large(args: argparse.Namespace, error: MemoryError) -> str:
    said = words_of(error)
    return (
        f"{_files_of(args)}: takes more memory than this process may have ({said}); give it more, "
        "or read less at a time"
    )


def _files_of(args: argparse.Namespace) -> str:
    """The input that was being read; `args` may be parsed in part."""
    texts = [text for value in vars(args).values() for text in _texts(value)]
    return ", ".join(dict.fromkeys(filter(_is_file, texts))) or "the arguments"


def _sentence(args: argparse.Namespace, error: Exception) -> str:
    """The input that was being read, the error, and where to report it."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return (
        f"internal error while reading {_files_of(args)}: {reason}; this is a defect of semisync "
        "and no answer: please report it where you got semisync from, with the lines below"
    )


def _texts(value: Any) -> Iterator[str]:
    """The texts of an argument, which may have several."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and text:
            yield text


def _is_file(text: str) -> bool:
    """Whether it names a file, a folder, a checkpoint's prefix or a pattern that matches some."""
    exists = os.path.exists(text) or os.path.exists(text + ".index")
    return exists or (glob.has_magic(text) and bool(glob.glob(text)))


def _say(name: str, sentence: str) -> None:
    try:
        sys.stdout.flush()
    except OSError:  # its reader has gone, or its disk is full
        _drop_output()
    say(f"semisync {name}: {sentence}", error=True)


if __name__ == "__main__":
    sys.exit(main())
