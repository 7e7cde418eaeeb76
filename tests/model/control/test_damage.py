"""A graph whose control flow is damaged is refused in a sentence, or loads."""

import random

import pytest
import tensorflow

from migrate.model.load import load_model
from semisync.common.errors import BadInput
from tests.model.control import graphs, programs
from tests.support.control_flow import control_flow

tf = tensorflow.compat.v1
_CONTROL = [
    "Enter", "Exit", "If", "LoopCond", "Merge", "NextIteration", "StatelessIf", "StatelessWhile",
    "Switch", "While",
]  # fmt: skip


@pytest.fixture(scope="module", params=[1, 2], ids=["dataflow", "functions"])
def definitions(request, tmp_path_factory):
    """Frozen graphs."""
    found = []
    for number in range(6):
        program = programs.draw(random.Random(number).choice)
        program = {**program, "kept": "frozen", "gradients": False}
        folder = tmp_path_factory.mktemp("programs") / str(number)
        with control_flow(request.param):
            graphs.keep(program, str(folder))
        found.append(tf.GraphDef.FromString((folder / "frozen.pb").read_bytes()))
    return [one for one in found if any(node.op in _CONTROL for node in one.node)]


def _damage(definition, chance):
    """Takes one thing away from, or changes it in, a node of control flow."""
    nodes = [node for node in definition.node if node.op in _CONTROL]
    node, other = chance.choice(nodes), chance.choice(nodes)
    place = chance.randrange(len(node.input))
    how = chance.choice(["input", "removed", "op", "other", "frame"])
    if how == "input":
        del node.input[place]
    elif how == "removed":
        definition.node.remove(node)
    elif how == "op":
        node.op = other.op
    elif how == "other":
        node.input[place] = other.name
    else:
        node.attr["frame_name"].s = b"other"


@pytest.mark.long
def test_no_damage_ends_with_another_error(definitions, tmp_path):
    chance, refused, count = random.Random(0), 0, 120
    for _ in range(count):
        damaged = tf.GraphDef()
        damaged.CopyFrom(chance.choice(definitions))
        _damage(damaged, chance)
        path = tmp_path / "frozen.pb"
        path.write_bytes(damaged.SerializeToString())
        try:
            load_model(path, output="y")
        except BadInput as error:
            assert "\n" not in str(error)
            refused += 1
    assert count / 4 < refused < count
