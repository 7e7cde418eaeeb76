"""The guard of generated source lets pass what the emitter writes, and nothing else."""

import ast
import pathlib

import hypothesis
import pytest
from hypothesis import strategies

import migrate.model
from migrate.model.load import load_model
from migrate.model.ops.registry import OPS
from migrate.model.source.guard import NotOurs, checked_expression, checked_module
from migrate.model.source.layout import laid_out
from semisync import cli
from semisync.common import exit_codes
from tests.model.foreign.texts import MARKER, TEXTS

tf = pytest.importorskip("tensorflow").compat.v1

MODULE = '''"""A model."""

import os

import torch
from torch import nn
from migrate import runtime

INPUTS = {"x": runtime.Input("float32", [None, 3], ["x:0"])}


class Model(nn.Module):
    """A model."""

    def __init__(self, files):
        super().__init__()
        self.w = nn.Parameter(torch.empty([3, 1]))
        self.register_buffer("c", torch.tensor([1.0]), persistent=False)

    def forward(self, inputs):
        inputs = runtime.by_name(inputs, INPUTS)
        x = inputs["x"]
        while x.sum() > 3:
            x = x.abs() / 2
        return torch.sigmoid(x @ self.w + self.c)


def load(directory=os.path.dirname(os.path.abspath(__file__))):
    return runtime.load(Model(runtime.Files(directory)), directory, {})
'''
LINE = "x = x.abs() / 2"

STATEMENTS = [
    "import subprocess",
    "from os import system",
    "import torch.hub as runtime",
    "x = os.system('true')",
    "x = os.path.join('a')",
    "x = torch.load('x')",
    "x = torch.hub",
    "x = torch",
    "x = torch.ops.load_library('x')",
    "x = torch.from_file('x', True, 3)",
    "x = runtime.os",
    "x = runtime.write_files('a', {}, {})",
    "x = x.numpy().tofile('x')",
    "x = x.apply_(len)",
    "x = x.__class__",
    "x = self._modules",
    "x = self.load_state_dict({})",
    "x = ().__class__.__bases__",
    "x = __import__('os')",
    "x = __builtins__",
    "x = open('x')",
    "x = eval('1')",
    "x = getattr(x, 'y')",
    "x = globals()",
    "x = print",
    "x = lambda: 1",
    "x = [y for y in x]",
    "x = f'{x}'",
    "x = (y := 1)",
    "x = yielded()",
    "x = x()",
    "torch = x",
    "len = x",
    "x.data = x",
    "x[0] = x",
    "x += 1",
    "del x",
    "assert x",
    "global x",
    "raise x",
    "with x: pass",
    "for y in x: pass",
    "try: pass\n        finally: pass",
    "def inner(): pass",
    "class Inner: pass",
    "yield x",
    "await x",
    "exec('1')",
    "x = torch.cat([x], **{})\n    @runtime.on_the_cpu\n    def other(self): pass",
]


def test_what_the_emitter_writes_passes():
    checked_module(MODULE)
    checked_expression(
        "torch.cat([x0.sum(1), -x1[:, 0].float()], 1) if x0.ndim else x1", {"x0", "x1"}
    )


@pytest.mark.parametrize("statement", STATEMENTS)
def test_another_statement_is_refused(statement):
    with pytest.raises(NotOurs):
        checked_module(MODULE.replace(LINE, statement))


@pytest.mark.parametrize(
    "line", [one[4:] for one in STATEMENTS if one.startswith("x = ") and "\n" not in one]
)
def test_another_expression_is_refused(line):
    with pytest.raises(NotOurs):
        checked_expression(line, {"x", "self"})


@pytest.mark.parametrize(
    "text",
    ["(" * 100_000, "-" * 100_000 + "1", "1 +" * 100_000 + "1", "a\x00b", "'", "x)", "y"],
    ids=lambda text: text[:3],
)
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(NotOurs):
        checked_expression(text, {"x"})


@pytest.mark.parametrize("folded", [True, False], ids=["evaluated at conversion", "in model.py"])
def test_the_guard_holds_where_an_op_quotes_by_hand(folded, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(OPS, "StringJoin", by_hand)
    with tf.Graph().as_default() as graph:
        words = tf.constant(["1", "2"]) if folded else tf.placeholder(tf.string, [2], "x")
        joined = tf.strings.to_number(tf.strings.join([words, words], "-"))
        tf.add(joined, tf.placeholder(tf.float32, [2], "z"), name="y")
    definition = graph.as_graph_def()
    for node in definition.node:
        if node.op == "StringJoin":
            node.attr["separator"].s = TEXTS[0].encode()
    path = tmp_path / "graph.pb"
    path.write_bytes(definition.SerializeToString())
    with pytest.raises(NotOurs):
        load_model(str(path), output="y")
    run = ["convert", str(path), "out", "--model", "--output", "y"]
    assert cli.main(run) == exit_codes.INTERNAL_ERROR
    assert "this is a defect of semisync" in capsys.readouterr().err
    assert not (tmp_path / MARKER).exists()
    assert not (tmp_path / "out").exists()


def by_hand(call):
    return f'runtime.string_join([{call[0].tensor}, {call[1].tensor}], "{call.text("separator")}")'


def test_no_text_of_a_graph_is_quoted_by_hand():
    """An f-string that writes source has no value between quotes; `!r` quotes it."""
    found = []
    for path in sorted(pathlib.Path(migrate.model.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text())
        raised = {id(one) for node in ast.walk(tree) if _is_message(node) for one in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr) and id(node) not in raised and _is_quoted(node):
                found.append(f"{path.name}:{node.lineno}")
    assert found == []


def _is_message(node):
    """Whether it is an error, or a sentence of one."""
    return isinstance(node, ast.Raise) or (
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".refusal", "BadInput"))
    )


def _is_quoted(node):
    for before, value, after in zip(node.values, node.values[1:], node.values[2:]):
        if isinstance(value, ast.FormattedValue) and value.conversion == -1:
            ends = [getattr(one, "value", "") for one in (before, after)]
            if (
                all(isinstance(one, str) for one in ends)
                and ends[0][-1:] == ends[1][:1]
                and ends[0][-1:] in {'"', "'"}
            ):
                return True
    return False


_STRINGS = strategies.text() | strategies.sampled_from(
    [one for one in TEXTS if isinstance(one, str)]
)
_VALUES = _STRINGS | strategies.binary() | strategies.floats(allow_nan=False, allow_infinity=False)


@hypothesis.settings(deadline=None)
@hypothesis.given(strategies.lists(_VALUES, min_size=1, max_size=12), strategies.integers(0, 3))
def test_a_layout_changes_no_program(values, depth):
    """Long lines of any literals are broken outside of them."""
    inner = ", ".join(map(repr, values))
    line = f"x = torch.cat([{inner}], {inner}) + self.y[{inner}] + f({{1: {values[0]!r}}}, {inner})"
    source = "".join(f"{'    ' * level}if x:\n" for level in range(depth))
    source += f"{'    ' * depth}{line}  # a comment, (of it)\n"
    assert ast.dump(ast.parse(laid_out(source))) == ast.dump(ast.parse(source))
