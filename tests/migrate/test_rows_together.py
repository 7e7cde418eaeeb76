"""Tables of one width are changed at once: each comes out as it would have alone."""

import pytest
import torch

from migrate.torchrec import optimizers
from migrate.torchrec.optimizers import row_optimizer

KINDS = {
    "Adagrad": {"lr": 0.1},
    "Adam": {"lr": 0.1, "rows": "touched"},
    "Ftrl": {"lr": 0.1, "l1": 0.01},
    "GradientDescent": {"lr": 0.1},
    "Momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "RMSProp": {"lr": 0.1, "momentum": 0.5, "centered": True},
}
SHAPES = [(50, 4), (7, 4), (30, 1), (9, 4), (20,), (11, 2, 3), (30, 1)]
DTYPES = [torch.float32] * 5 + [torch.float64, torch.bfloat16]


def tables():
    random = torch.Generator().manual_seed(0)
    return [
        torch.nn.Parameter(torch.randn(shape, generator=random).to(dtype))
        for shape, dtype in zip(SHAPES, DTYPES)
    ]


def gradients(step):
    """Sparse ones, whose rows repeat; one looks up no row; one is dense, with rows of 0."""
    random = torch.Generator().manual_seed(step)
    for number, (shape, dtype) in enumerate(zip(SHAPES, DTYPES)):
        count = 0 if number == step else 40
        rows = torch.randint(shape[0], (count,), generator=random)
        values = torch.randn((count, *shape[1:]), generator=random).to(dtype)
        sparse = torch.sparse_coo_tensor(rows.unsqueeze(0), values, shape)
        yield sparse.to_dense() if number == 1 else sparse


def trained(kind, apart):
    """The tables and their slots after three steps."""
    parameters = tables()
    owners = [[one] for one in parameters] if apart else [parameters]
    own = [getattr(optimizers, kind)(some, **KINDS[kind]) for some in owners]
    for step in range(3):
        for parameter, grad in zip(parameters, gradients(step)):
            parameter.grad = grad
        for one in own:
            one.step()
    states = {k: v for one in own for k, v in one.state.items()}
    return [(one.detach(), *map(states[one].get, sorted(states[one]))) for one in parameters]


@pytest.mark.parametrize("at_once", [0, 200, row_optimizer._TOGETHER])
@pytest.mark.parametrize("kind", KINDS)
def test_tables_that_step_together_are_as_apart(kind, at_once, monkeypatch):
    alone = trained(kind, apart=True)
    monkeypatch.setattr(row_optimizer, "_TOGETHER", at_once)
    for one, other in zip(trained(kind, apart=False), alone):
        assert all(map(torch.equal, one, other))


SETTINGS = {
    "Adagrad": {"lr": 0.1, "eps": 0.01},
    "Ftrl": {"lr": 0.1, "l1": 0.5, "l2": 0.1, "l2_shrinkage": 0.2},
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_compiled_step_is_that_of_the_formula(kind, monkeypatch):
    monkeypatch.setitem(KINDS, kind, SETTINGS[kind])
    compiled = trained(kind, apart=False)
    monkeypatch.delattr(getattr(optimizers, kind), "update_together")
    for one, other in zip(compiled, trained(kind, apart=False)):
        for ours, formula in zip(one, other):
            torch.testing.assert_close(ours, formula, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["Adagrad", "Momentum"])
def test_a_row_that_a_table_does_not_have_is_refused(kind):
    weight = torch.nn.Parameter(torch.zeros(4, 2))
    rows, values = torch.tensor([[1, 4]]), torch.ones(2, 2)
    optimizer = getattr(optimizers, kind)([weight], **KINDS[kind])
    weight.grad = torch.sparse_coo_tensor(rows, values, (4, 2), check_invariants=False)
    with pytest.raises(IndexError, match="beyond its table's 4"):
        optimizer.step()


def test_rows_that_repeat_are_summed_in_their_order():
    """As TensorFlow sums them; large and small values tell the order."""
    weight = torch.nn.Parameter(torch.zeros(4, 1))
    rows = torch.tensor([[2, 0, 2, 2, 0]])
    values = torch.tensor([[1e8], [1.0], [1.0], [-1e8], [2.0]])
    weight.grad = torch.sparse_coo_tensor(rows, values, (4, 1))
    optimizers.GradientDescent([weight], lr=1.0).step()
    assert weight.detach()[:, 0].tolist() == [-3.0, 0.0, 0.0, 0.0]


def test_repeated_rows_of_a_table_of_doubles_are_summed_before_they_are_squared():
    weight = torch.nn.Parameter(torch.ones(4, 2, dtype=torch.float64))
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=torch.float64)
    weight.grad = torch.sparse_coo_tensor(torch.tensor([[1, 1, 3]]), values, weight.shape)
    optimizers.Adagrad([weight], lr=0.1).step()
    total = torch.tensor([[0, 0], [4, 6], [0, 0], [5, 6]], dtype=torch.float64)
    assert torch.allclose(weight, 1 - 0.1 * total / (0.1 + total**2).sqrt())
