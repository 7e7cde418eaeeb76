"""HSTU computes the paper's formula, looks at no later token, and trains under the same loop."""

import json
import math

import torch

from migrate.hstu import Block, Hstu, bucket
from migrate.training.task import Batch, Task
from migrate.training.trainer import Settings, train

DIM, HEADS, N = 8, 2, 6


def silu(x):
    return x / (1 + math.exp(-x))


def by_hand(block, tokens, times):
    """The formula of one sequence, number by number."""
    norm, state = torch.nn.functional.layer_norm, dict(block.named_parameters())
    normed = norm(tokens, (DIM,), state["norm.weight"], state["norm.bias"])
    mixed = normed @ state["inward.weight"].T + state["inward.bias"]
    u, v, q, k = torch.nn.functional.silu(mixed).split(DIM, 1)
    out = torch.zeros(N, DIM)
    size = DIM // HEADS
    for head in range(HEADS):
        own = slice(head * size, (head + 1) * size)
        for i in range(N):
            for j in range(i + 1):
                age = abs(float(times[i] - times[j]))
                bias = state["bias.position"][i - j]
                bias = bias + state["bias.time"][int(math.log(max(1.0, age)) / 0.301)]
                weight = silu(float(q[i, own] @ k[j, own] + bias)) / block.length
                out[i, own] += weight * v[j, own]
    gated = norm(out, (DIM,), state["gate_norm.weight"], state["gate_norm.bias"]) * u
    return tokens + gated @ state["outward.weight"].T + state["outward.bias"]


def test_a_block_computes_the_formula_of_the_paper():
    torch.manual_seed(0)
    block = Block(DIM, HEADS, length=10)
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    tokens = torch.randn(2, N, DIM)
    times = torch.tensor([[0, 1, 1, 40, 41, 900], [5, 5, 6, 7, 8, 9]])
    with torch.no_grad():
        found = block(tokens, times)
        for row in range(2):
            torch.testing.assert_close(found[row], by_hand(block, tokens[row], times[row]))


def test_no_token_sees_a_later_one():
    torch.manual_seed(0)
    tower = Hstu(DIM, HEADS, blocks=2, length=N)
    tokens, times = torch.randn(1, N, DIM, requires_grad=True), torch.arange(N).unsqueeze(0)
    tower(tokens, times)[0, 3, 0].backward()
    seen = tokens.grad[0].abs().sum(1) > 0
    assert seen.tolist() == [True] * 4 + [False] * 2


def test_ages_fall_into_buckets_that_grow_with_them():
    ages = torch.tensor([0, 1, 2, 3, 10, 1000, 10**9])
    assert bucket(ages, 32).tolist() == [0, 0, 2, 3, 7, 22, 31]


class Repeats(torch.nn.Module):
    """Whether the token before was the same."""

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(4, 16)
        self.tower = Hstu(16, 2, blocks=2, length=12)
        self.out = torch.nn.Linear(16, 1)

    def forward(self, tokens):
        times = torch.zeros_like(tokens)
        logits = self.out(self.tower(self.tokens(tokens), times))[..., 0].reshape(-1)
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
