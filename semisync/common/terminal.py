"""Lines for people: the one place that writes to the standard output and the standard error.

Names of tensors, columns, files, nodes and peers are others' data. A name may hold a line break, a
terminal's escape sequences or characters that turn the direction of writing, and so a verdict of
its own. Therefore:

1. A line is a line: what is not printable in it, line breaks included, is shown as Python writes it
   in a literal (`shown`). A caller with several lines passes several.
2. A name that stands where a line begins is quoted unless it is one plain word (`quoted`).
3. JSON stays JSON: what is not printable is escaped (`json_lines`).

`print` is refused elsewhere by ruff. A launched command's output is passed on as it is.
"""

import json
import sys
import traceback

_CLEAR = "\r\033[K"


def shown(line):
    """A line as people see it, without a character that a terminal would obey."""
    text = str(line)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def quoted(name):
    """A name where a line begins: as it is if it is one plain word, else in quotes."""
    plain = name and name.isprintable() and not name.endswith(":")
    return name if plain and len(name.split()) == 1 else repr(name)


def say(*lines, error=False, flush=False):
    """Writes lines.

    Args:
        lines: each becomes one, whatever it holds.
        error: to the standard error.
        flush: at once.
    """
    stream = sys.stderr if error else sys.stdout
    if stream is None:  # the parent process closed it
        return
    stream.write("".join(shown(line) + "\n" for line in lines))
    if flush:
        stream.flush()


def json_lines(value, **options):
    """The lines of a value as JSON in letters of any language; options are those of json.dumps."""
    text = json.dumps(value, ensure_ascii=False, **options)
    return ["".join(map(_in_json, line)) for line in text.split("\n")]


def live(text):
    """Shows progress in place of the line shown before, on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR + shown(text))
        sys.stderr.flush()


def is_watched():
    """Whether `live` shows anything."""
    return sys.stderr.isatty()


def say_traceback(error):
    """The traceback of an exception, indented: the lines of its message are no lines of ours."""
    parts = traceback.format_exception(type(error), error, error.__traceback__)
    say(*("  " + line for line in "".join(parts).rstrip("\n").split("\n")), error=True)


def _in_json(letter):
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]
