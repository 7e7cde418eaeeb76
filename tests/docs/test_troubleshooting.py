"""Every message that the page on troubleshooting quotes is one that the code prints."""

import ast
import re

import pytest

from tests.support.require import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
PACKAGES = ("semisync", "graph_rewrite", "migrate", "parity")
_ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
_FIELD = re.compile(r"%(?:\.\d+)?[sdrf]|{[^{}]*}")
ANYTHING = "..."


def quoted():
    """The messages of the tables whose first column is one."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    shown = [section for section in sections if "\n| message |" in section]
    return [message for section in shown for message in _ROW.findall(section)]


def texts(tree):
    """Every text of a module, with ANYTHING in place of what is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else ANYTHING for p in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield _FIELD.sub(ANYTHING, node.value)


@pytest.fixture(scope="module")
def printed():
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {text for path in files for text in texts(ast.parse(path.read_text(encoding="utf-8")))}


def is_printed(message, printed):
    """Whether a text of the code has the message; its `...` stand for what is filled in."""
    bare = message.replace("'", "")
    return any(bare in text.replace("'", "") for text in printed)


def test_every_message_is_printed(printed):
    messages = quoted()
    assert len(messages) > 30
    assert [message for message in messages if not is_printed(message, printed)] == []


def test_a_message_that_nothing_prints_is_noticed(printed):
    assert is_printed("no ticket for ... in ... s", printed)
    assert not is_printed("no ticket for ... in ... minutes", printed)
