"""How source is laid out: strings in double quotes, lines of at most 100 characters where a bracket
can be split; its content then has a line of its own, or one per element, as in Python
formatters."""

from __future__ import annotations

import io
import re
import tokenize
from typing import Iterator, List, Optional, Set, Tuple

_WIDTH = 100
_OPEN, _CLOSE = "([{", ")]}"

# A string literal within a line, including a docstring of one line.
STRING = (
    r'"""(?:[^"\\]|\\.)*"""'
    r"|(?<!\w)[bru]{0,2}'(?:[^'\\]|\\.)*'"
    r'|(?<!\w)[bru]{0,2}"(?:[^"\\]|\\.)*"'
)


def laid_out(text: str) -> str:
    """`text`, a whole file, laid out."""
    text = double_quoted(text)
    prose: Set[int] = set()  # lines of strings that span several lines, which stay as they are
    for token in _strings(text):
        if token.start[0] < token.end[0]:
            prose.update(range(token.start[0], token.end[0] + 1))
    lines: List[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        lines += [line] if number in prose else wrapped(line)
    return "\n".join(lines)


def double_quoted(text: str) -> str:
    """`text` with its strings in double quotes, where that needs no escape."""
    lines = text.splitlines(keepends=True)
    for token in reversed(_strings(text)):
        one = token.string
        if token.start[0] == token.end[0] and one[-1] == "'" and not {'"', "\\"} & {*one}:
            row, (start, end) = token.start[0] - 1, (token.start[1], token.end[1])
            lines[row] = lines[row][:start] + one.replace("'", '"') + lines[row][end:]
    return "".join(lines)


def _strings(text: str) -> List[tokenize.TokenInfo]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token for token in tokens if token.type == tokenize.STRING]


def wrapped(line: str) -> Iterator[str]:
    """The lines that a line of code becomes."""
    code, comment = _split_comment(line)
    place = _bracket(code) if len(code) > _WIDTH else None
    if len(code) > _WIDTH and (place is None or max(place[0], len(code) - place[1]) > _WIDTH):
        # No bracket leaves short lines: a sum, or else a product, is broken at its signs.
        terms = _terms(code)
        if len(terms) > 1:
            target, first = terms[0].split(" = ", 1)
            margin = line[: len(line) - len(line.lstrip())] + "    "
            yield f"{target} = ({comment}"
            for term in [first, *terms[1:]]:
                yield from wrapped(margin + term)
            yield margin[4:] + ")"
            return
    if place is None:
        yield line
        return
    start, end = place
    margin = line[: len(line) - len(line.lstrip())] + "    "
    content = code[start + 1 : end]
    yield code[: start + 1] + comment
    if len(margin) + len(content.strip()) <= _WIDTH:
        yield margin + content.strip()
    elif _takes_comma(code, start, end):
        for element in _elements(content):
            yield from wrapped(f"{margin}{element},")
    else:
        yield from wrapped(margin + content.strip())
    yield from wrapped(margin[4:] + code[end:])


def masked(code: str) -> str:
    """`code` with each string literal replaced by a word of its length, since it holds no code."""
    return re.sub(STRING, lambda one: "s" * len(one[0]), code)


def _split_comment(line: str) -> Tuple[str, str]:
    if line.lstrip().startswith("#"):
        return "", line
    end = len(masked(line).partition("  # ")[0])
    return line[:end], line[end:]


def _brackets(code: str) -> List[Tuple[int, int]]:
    """The outermost brackets, outside of strings, in their order."""
    found: List[Tuple[int, int]] = []
    opened: List[int] = []
    for place, character in enumerate(masked(code)):
        if character in _OPEN:
            opened.append(place)
        elif character in _CLOSE and opened:
            start = opened.pop()
            if not opened:
                found.append((start, place))
    return found


def _bracket(code: str) -> Optional[Tuple[int, int]]:
    """The last bracket that leaves short lines before and after it, or the longest, if any."""
    found = [(start, end) for start, end in _brackets(code) if code[start + 1 : end].strip()]
    for start, end in reversed(found):
        if start < _WIDTH and len(code) - end < _WIDTH:
            return start, end
    return max(found, key=lambda place: place[1] - place[0], default=None)


def _terms(code: str) -> List[str]:
    """The terms of a sum, or else the factors of a product, that is assigned to a name, each with
    its sign; none of anything else."""
    inner, words = _brackets(code), masked(code)
    signs: List[int] = []
    for kinds in ("[+-]", "[@*/]"):
        found = [one.start() + 1 for one in re.finditer(f" {kinds} ", words)]
        signs = signs or [place for place in found if not any(a < place < b for a, b in inner)]
    assigns = re.match(r"\s*[\w, ]+ = ", words)
    if not signs or not assigns or re.search(r" (if|and|or|<|>) ", words):
        return []
    places = [0, *signs, len(code)]
    return [code[begin:end].rstrip() for begin, end in zip(places, places[1:])]


def _takes_comma(code: str, start: int, end: int) -> bool:
    """Whether a comma after the last element changes nothing: in calls, lists and mappings, and in
    tuples of several; not in subscripts and around one expression."""
    before = code[start - 1 : start]
    follows_name = before.isalnum() or before in ("_", ")", "]")
    elements = _elements(code[start + 1 : end])
    if code[start] == "(":
        return bool(elements) if follows_name else len(elements) > 1
    return bool(elements) and not follows_name


def _elements(content: str) -> List[str]:
    """The parts between commas at the top level."""
    parts, begin, depth = [], 0, 0
    for place, character in enumerate(masked(content)):
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == "," and not depth:
            parts.append(content[begin:place].strip())
            begin = place + 1
    return [part for part in [*parts, content[begin:].strip()] if part]
