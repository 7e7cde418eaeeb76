"""A module of one's own trains under the same loop as a converted graph."""

import json

import torch

from migrate.sequences import Hstu, Packed
from migrate.training.task import Batch, Task
from migrate.training.trainer import Settings, train


class Repeats(torch.nn.Module):
    """Whether the token before was the same."""

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(4, 16)
        self.tower = Hstu(16, 2, layers=2, length=12)
        self.out = torch.nn.Linear(16, 1)

    def forward(self, tokens):
        packed = Packed.of(list(tokens))
        logits = self.out(self.tower(self.tokens(packed.items), packed)).squeeze(1)
        labels = same(tokens)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels), logits


def same(tokens):
    before = torch.nn.functional.pad(tokens[:, :-1], (1, 0), value=-1)
    return (tokens == before).float().reshape(-1)


class Draws:
    """Sequences by their number."""

    def __init__(self, batches):
        self._next, self._batches = 0, batches

    def __iter__(self):
        while self._next < self._batches:
            draw = torch.Generator().manual_seed(self._next)
            tokens = torch.randint(0, 4, (16, 12), generator=draw)
            self._next += 1
            yield Batch(tokens, same(tokens))

    def state_dict(self):
        return {"next": self._next}

    def load_state_dict(self, state):
        self._next = state["next"]


def repeats():
    torch.manual_seed(0)
    module = Repeats()
    return Task(module, torch.optim.Adam(module.parameters(), 3e-3))


def test_a_module_of_ones_own_trains_under_the_same_loop_and_goes_on(tmp_path):
    torch.set_num_threads(1)
    whole, task = repeats(), repeats()
    first = train(whole, Draws(60), str(tmp_path / "whole"), Settings(report_every=20))
    part = str(tmp_path / "part")
    train(repeats(), Draws(60), part, Settings(steps=30, report_every=20))
    result = train(task, Draws(60), part, Settings(report_every=20), resume=True)
    assert (first.step, result.step) == (60, 60)
    for one, other in zip(task.module.parameters(), whole.module.parameters()):
        assert torch.equal(one, other)
    assert result.metrics.whole() == first.metrics.whole()
    lines = [json.loads(line) for line in (tmp_path / "part" / "log.jsonl").open()]
    assert [line["step"] for line in lines] == [20, 30, 40, 60]
    assert lines[-1]["loss"] < lines[0]["loss"]
