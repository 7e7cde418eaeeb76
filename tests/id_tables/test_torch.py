"""What torch's users do with any module: state dicts, copies, clipping, AMP."""

import copy
import io

import pytest
import torch

from migrate.id_tables import IdEmbeddings, IdTable, clip_grad_norm_
from migrate.torchrec import optimizers
from semisync.common.errors import UsageError
from tests.id_tables.process import run

IDS = torch.tensor([1, 2**40, -7, 1])


class Model(torch.nn.Module):
    """A dense layer upon two tables, that do not pool."""

    def __init__(self, kind="Adagrad", tables=("user", "item")):
        super().__init__()
        torch.manual_seed(0)
        self.tables = IdEmbeddings([IdTable(name, 4, [name], pooling=None) for name in tables])
        self.of_tables = self.tables.optimizer(getattr(optimizers, kind), lr=0.1)
        self.dense = torch.nn.Linear(4, 1)
        self.of_dense = torch.optim.SGD(self.dense.parameters(), lr=0.1)

    def forward(self, ids):
        found = self.tables(dict.fromkeys(self.tables.tables, ids))
        return self.dense(sum(found.values())).square().mean()

    def gradients(self, ids=IDS, times=1.0):
        """A backward pass upon no gradients."""
        self.of_tables.zero_grad()
        self.of_dense.zero_grad()
        (times * self(ids)).backward()

    def take(self, steps=3, ids=IDS):
        for number in range(steps):
            self.gradients(ids + number)
            self.of_tables.step()
            self.of_dense.step()
        return self


def of_rows(model):
    """By table and id: vector, slots, count, last step; and the steps of each table."""
    found = {}
    for name, state in model.tables.get_extra_state()["tables"].items():
        rows = state.pop("rows")
        ids = rows.pop("id").tolist()
        columns = zip(*(column.tolist() for column in rows.values()))
        found[name] = dict(zip(ids, columns)), state
    return found, model.dense.weight.tolist()


def saved(value):
    """As torch reads what it saved, of tensors and plain values alone."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("kind", ["Adagrad", "Adam", "GradientDescent"])
def test_a_state_dict_has_the_rows_and_training_goes_on_to_the_same_bits(kind):
    first, second = Model(kind).take(), Model(kind).take(1, IDS + 50)
    assert second.load_state_dict(saved(first.state_dict())).missing_keys == []
    first.of_tables.param_groups[0]["lr"] = 0.05
    second.of_tables.load_state_dict(saved(first.of_tables.state_dict()))
    assert of_rows(first) == of_rows(second)
    assert of_rows(first.take()) == of_rows(second.take())
    assert second.of_tables.param_groups[0]["lr"] == 0.05


def test_a_state_dict_that_does_not_fit_is_refused():
    state = Model().take().state_dict()
    with pytest.raises(UsageError, match="the state has tables \\['item', 'user'\\], not \\['us"):
        Model(tables=["user"]).load_state_dict(state)
    with pytest.raises(UsageError, match="has the slots \\['sum'\\], and its optimizer has \\['ex"):
        Model("Adam").load_state_dict(state)
    without = {key: value for key, value in state.items() if "extra" not in key}
    with pytest.raises(RuntimeError, match="Missing key.*tables._extra_state"):
        Model().load_state_dict(without)
    state["tables._extra_state"]["process"] = [1, 2]
    with pytest.raises(UsageError, match="the rows of process 1 of 2, and this is process 0 of 1"):
        Model().load_state_dict(state)
    first = Model().take()
    slots = {"state": {0: {"sum": torch.ones(3, 4)}}, "param_groups": []}
    with pytest.raises(UsageError, match="belongs to their rows"):
        first.of_tables.load_state_dict(slots)


def pickled(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_a_copy_trains_and_leaves_the_original_as_it_is(copied):
    original, alone = Model("Adam").take(), Model("Adam").take()
    for model in (original, alone):
        model.gradients()  # which a copy does not step by
    other = copied(original)
    before = of_rows(original)
    assert of_rows(other.take()) == of_rows(alone.take())
    assert of_rows(original) == before
    assert of_rows(original.take()) == of_rows(alone)
    assert other.tables.optimizers == [other.of_tables] != [original.of_tables]


class Plain(torch.nn.Module):
    """The same with torch's tables."""

    def __init__(self, model):
        super().__init__()
        self.ids = {one: number for number, one in enumerate(sorted(set(IDS.tolist())))}
        rows = {name: of for name, (of, _) in of_rows(model)[0].items()}
        self.tables = torch.nn.ModuleList()
        for of in rows.values():
            vectors = torch.tensor([list(of[one])[2] for one in self.ids])
            self.tables.append(torch.nn.Embedding.from_pretrained(vectors, freeze=False))
        self.dense = copy.deepcopy(model.dense)

    def forward(self):
        places = torch.tensor([self.ids[one] for one in IDS.tolist()])
        return self.dense(sum(table(places) for table in self.tables)).square().mean()


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.01, 1e9])
def test_clipping_counts_the_rows_as_torch_counts_those_of_its_tables(norm_type, max_norm):
    model = Model("GradientDescent").take(1)
    plain = Plain(model)
    model.gradients()
    plain().backward()
    wanted = torch.nn.utils.clip_grad_norm_(plain.parameters(), max_norm, norm_type)
    found = clip_grad_norm_(model, max_norm, norm_type)
    torch.testing.assert_close(found.float(), wanted)
    torch.optim.SGD(plain.parameters(), lr=0.1).step()
    model.of_tables.step()
    model.of_dense.step()
    assert torch.allclose(model.dense.weight, plain.dense.weight)
    for (rows, _), table in zip(of_rows(model)[0].values(), plain.tables):
        vectors = torch.tensor([list(rows[one])[2] for one in plain.ids])
        torch.testing.assert_close(vectors, table.weight.detach())


def test_gradients_of_several_backward_passes_add_up_whenever_they_are_collected():
    first, second = Model().take(), Model().take()
    for model in (first, second):
        model.gradients()
        if model is first:
            model.tables.collect()
        model(IDS + 2).backward()
        model.of_tables.step()
    (ours, _), (theirs, _) = of_rows(first)[0]["user"], of_rows(second)[0]["user"]
    assert sorted(ours) == sorted(theirs)
    for one, columns in ours.items():
        for found, wanted in zip(columns, theirs[one]):
            assert found == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("named", [False, True])
def test_a_step_may_make_its_gradients_by_a_closure(named):
    model, plain = Model().take(), Model().take()
    plain.gradients()
    plain.of_tables.step()

    def closure():
        model.gradients()
        return 7

    step = model.of_tables.step
    assert (step(closure=closure) if named else step(closure)) == 7
    assert of_rows(model) == of_rows(plain)


def test_a_gradient_scaler_unscales_the_rows_and_leaves_out_a_step_that_overflows():
    model, plain = Model().take(), Model().take()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for times in (1.0, float("inf"), 1.0):
        model.of_tables.zero_grad()
        scaler.scale(times * model(IDS)).backward()
        model.tables.collect()
        scaler.step(model.of_tables)
        scaler.update()
    for _ in range(2):
        plain.gradients()
        plain.of_tables.step()
    assert scaler.get_scale() == 512
    for (ours, _), (theirs, _) in zip(of_rows(model)[0].values(), of_rows(plain)[0].values()):
        for one, columns in ours.items():
            assert columns[2:] == theirs[one][2:]


@pytest.mark.long
def test_processes_clip_as_one(interpreters, tmp_path):
    ((norm, rows),) = run(interpreters / "python", "clipping", tmp_path, 1)
    parts = run(interpreters / "python", "clipping", tmp_path, 2)
    assert [own for own, _ in parts] == pytest.approx([norm] * 2, rel=1e-5)
    together = {one: values for _, own in parts for one, values in own.items()}
    assert sorted(together) == sorted(rows)
    for one, values in rows.items():
        torch.testing.assert_close(together[one], values)
