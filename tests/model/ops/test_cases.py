"""Each op on cases of its own: values, types, shapes and gradients; shapes known and unknown."""

import pytest

from migrate.model.ops.registry import OPS
from tests.model.ops.cases import (
    arithmetic,
    arrays,
    gathering,
    lists,
    matrices,
    networks,
    nn,
    ragged,
    reductions,
    shapes,
    sparse,
    strings,
)
from tests.model.ops.one_op import Program
from tests.model.ops.test_others import BY_HAND

MODULES = [
    arithmetic,
    arrays,
    gathering,
    lists,
    matrices,
    networks,
    nn,
    ragged,
    reductions,
    shapes,
    sparse,
    strings,
]
CASES = [case for module in MODULES for case in module.CASES]
# What a graph knows of its inputs' shapes varies from case to case; LONG=1 has every combination.
TURNS = [(case, number % len(case.shapes)) for number, case in enumerate(CASES)]
COMBINED = [
    pytest.param(case, shapes, turn == own, marks=[] if turn == own else [pytest.mark.long])
    for case, own in TURNS
    for turn, shapes in enumerate(case.shapes)
]


@pytest.mark.parametrize(("case", "shapes", "own"), COMBINED, ids=lambda one: str(one))
def test_the_op_gives_what_tensorflow_gives(case, shapes, own):
    program = Program(case.build, case.inputs, shapes)
    assert case.op in program.ops
    program.check(*case.inputs, gradient=case.gradient and own, rtol=case.rtol)


def test_every_op_has_a_case():
    elsewhere = {*arithmetic.UNARY, *arithmetic.BINARY, *arithmetic.BITS, *BY_HAND, "Cast"}
    elsewhere |= set(arithmetic.BINARY_INTEGERS)
    assert sorted(set(OPS) - elsewhere - {case.op for case in CASES}) == []
