"""Each option that a refusal on migrate's way names is one that migrate takes."""

import argparse
import ast
import re

import pytest

from semisync.commands import migrate as command
from tests.test_architecture import MODULES, imports_of

# What `migrate` and `parity` hand out by their names, which no import statement tells.
BEGINNINGS = (
    "semisync.commands.migrate",
    "migrate.planning.planner",
    "migrate.conversion.convert",
)

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OTHER_COMMAND = re.compile(r"`[^`]*`")  # such as `semisync convert --model`

# Refusals of what migrate never asks for.
NOT_ASKED = {
    "migrate.ids.merging": {"--ids"},  # other than rows
    "migrate.planning.static": {"--static"},
    "migrate.scoring.in_torch": {"--torch-model"},
    "migrate.scoring.model_files": {"--checkpoint", "--saved-model"},  # of `semisync score`
    "migrate.targets.work_directory": {"--scratch"},  # of a URL
    "migrate.verification.comparing": {"--sample"},
    # The commands that come after migrate.
    "semisync.migration.following": {"--baseline-score", "--candidate-score", "--converted"},
}


def on_the_way():
    """The modules of migrate and of semisync that migrate imports, wherever in them; `parity` has
    words of its own on files of its own."""
    found, pending = set(), list(BEGINNINGS)
    while pending:
        name = pending.pop()
        if name in MODULES and name not in found and not name.startswith("parity"):
            found.add(name)
            pending += imports_of(name)
    return sorted(found)


class Sentences(ast.NodeVisitor):
    """The texts of a module, but for docstrings, examples, CSS and declarations of options."""

    def __init__(self):
        self.found = []

    def visit_Expr(self, node):
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node):
        if not {"_EXAMPLES", "STYLE"} & {getattr(target, "id", "") for target in node.targets}:
            self.generic_visit(node)

    def visit_Call(self, node):
        first = node.args[0] if node.args else None
        if not (isinstance(first, ast.Constant) and str(first.value).startswith("--")):
            self.generic_visit(node)

    def visit_JoinedStr(self, node):
        self.found.append("".join(str(getattr(part, "value", "")) for part in node.values))

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            self.found.append(node.value)


def options_of(module):
    """The options that a module's sentences name, but for those of other commands."""
    visitor = Sentences()
    visitor.visit(ast.parse(MODULES[module].read_text(encoding="utf-8")))
    texts = (OTHER_COMMAND.sub("", text) for text in visitor.found)
    return {option for text in texts for option in OPTION.findall(text)}


@pytest.mark.long
def test_a_refusal_on_migrates_way_names_options_that_migrate_takes():
    parser = argparse.ArgumentParser()
    command.configure(parser)
    taken = set(parser._option_string_actions)
    named = {module: options_of(module) - taken for module in on_the_way()}
    assert {module: options for module, options in named.items() if options} == NOT_ASKED


def test_the_way_is_found():
    assert {
        "migrate.behaviour.training",
        "migrate.graph.slot_owners",
        "migrate.scoring.scores",
        "migrate.targets.work_directory",
    } <= set(on_the_way())
