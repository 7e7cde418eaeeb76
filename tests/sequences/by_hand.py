"""The papers' formulas, of one sequence, number by number, in float64."""

import functools
import math

import numpy
import torch
from torch.nn import functional as F

from migrate.sequences import Hstu, Packed


def silu(x):
    return x / (1 + math.exp(-x))


def norm(x, weight, bias, epsilon):
    """Layer norm of one token."""
    centred = x - x.mean()
    return centred / math.sqrt((centred**2).mean() + epsilon) * weight + bias


norm_of_hstu = functools.partial(norm, epsilon=1e-6)
norm_of_sasrec = functools.partial(norm, epsilon=1e-5)


def entered(state, vectors, places):
    dim = vectors.shape[1]
    return [math.sqrt(dim) * x + state["places"][place] for x, place in zip(vectors, places)]


def left(state, tokens, norm):
    return numpy.stack([norm(x, state["norm.weight"], state["norm.bias"]) for x in tokens])


def in_order(n, times=None, asked=None, candidates=0):
    """Of each item (its place, the items that it sees, when it is asked), the last ones
    candidates."""
    seen, found = n - candidates, []
    for i in range(n):
        now = None
        if times is not None:
            following = times[i] if asked is None else asked
            now = times[i] if i >= seen else times[i + 1] if i + 1 < n else following
        found.append((min(i, seen), [*range(min(i, seen)), i], now))
    return found


def in_turns(times, asked=None):
    """The same of items and actions in turn, where none sees another of its time."""
    found, moments = [], sorted(set(times))
    for i, time in enumerate(times):
        before = [
            token for j in range(len(times)) if times[j] < time for token in (2 * j, 2 * j + 1)
        ]
        place = 2 * moments.index(time)
        later = [*moments, time if asked is None else asked][moments.index(time) + 1]
        found.append((place, [*before, 2 * i], time))
        found.append((place + 1, [*before, 2 * i, 2 * i + 1], later))
    return found


def state_of(tower):
    return {name: value.detach().numpy() for name, value in tower.state_dict().items()}


def hstu(tower, vectors, standing, times=None):
    """What `Hstu` makes of one sequence: vectors [n, dim], times [n], `in_order` or `in_turns`."""
    state, n, dim = state_of(tower), *vectors.shape
    places, sees, asked = zip(*standing)
    heads, size = tower.layers[0].heads, dim // tower.layers[0].heads
    tokens = entered(state, vectors, places)
    for number in range(len(tower.layers)):
        own = {
            name.split(".", 2)[2]: value
            for name, value in state.items()
            if name.startswith(f"layers.{number}.")
        }
        u, v, q, k = [], [], [], []
        for x in tokens:
            mixed = own["inward.weight"] @ norm_of_hstu(x, own["norm.weight"], own["norm.bias"])
            mixed = [silu(one) for one in mixed + own["inward.bias"]]
            for part, begun in zip((u, v, q, k), range(0, 4 * dim, dim)):
                part.append(numpy.array(mixed[begun : begun + dim]))
        made = []
        for i in range(n):
            found = numpy.zeros(dim)
            for head in range(heads):
                at = slice(head * size, (head + 1) * size)
                for j in sees[i]:
                    bias = own["bias.position"][places[i] - places[j]]
                    if times is not None:
                        age = math.floor(math.log(max(1, abs(asked[i] - times[j]))) / 0.301)
                        bias += own["bias.time"][min(age, tower.buckets - 1)]
                    found[at] += silu(q[i][at] @ k[j][at] + bias) / tower.length * v[j][at]
            gated = norm_of_hstu(found, own["gate_norm.weight"], own["gate_norm.bias"]) * u[i]
            made.append(tokens[i] + own["outward.weight"] @ gated + own["outward.bias"])
        tokens = made
    return left(state, tokens, norm_of_hstu)


def as_the_authors_begin():
    """A tower of the authors' size for MovieLens, and vectors of a sequence, all as they begin."""
    torch.manual_seed(0)
    tower = Hstu(dim=50, heads=1, layers=2, length=211, buckets=129)
    tower.norm = torch.nn.Identity()
    for layer in tower.layers:
        torch.nn.init.zeros_(layer.inward.bias)
    times = torch.randint(10**7, (40,)).sort().values
    return tower, torch.randn(40, 50) * 0.02, Packed.of([torch.arange(40)], [times])


def authors_hstu(tower, vectors, times):
    """What the authors' code makes of one sequence (meta-recsys/generative-recommenders,
    research/modeling/sequential/hstu.py): no weights of norms, no bias of the first linear layer,
    and at the end the direction alone.
    """
    count, dim = vectors.shape
    order = torch.arange(count, device=vectors.device)
    x = vectors * dim**0.5 + tower.places[:count]
    following = torch.cat([times[1:], times[-1:]])
    ages = (following.unsqueeze(1) - times).abs().clamp(min=1)
    buckets = (ages.log() / 0.301).long().clamp(0, tower.buckets - 1)
    for layer in tower.layers:
        normed = F.layer_norm(x, [dim], eps=1e-6)
        u, v, q, k = F.silu(normed @ layer.inward.weight.T).split(dim, 1)
        q, k, v = (part.unflatten(1, (layer.heads, -1)) for part in (q, k, v))
        bias = layer.bias.position[(order.unsqueeze(1) - order).clamp(min=0)]
        scores = torch.einsum("nhd,mhd->hnm", q, k) + bias + layer.bias.time[buckets]
        weights = F.silu(scores) / tower.length * (order.unsqueeze(1) >= order)
        found = torch.einsum("hnm,mhd->nhd", weights, v).flatten(1)
        x = layer.outward(u * F.layer_norm(found, [dim], eps=1e-6)) + x
    return F.normalize(x, dim=1)


def sasrec(tower, vectors, standing, times=None):
    """What `SasRec` makes of one sequence: vectors [n, dim], `in_order` or `in_turns`."""
    state, n, dim = state_of(tower), *vectors.shape
    places, sees, _ = zip(*standing)
    heads, size = tower.layers[0].heads, dim // tower.layers[0].heads
    tokens = entered(state, vectors, places)
    for number in range(len(tower.layers)):
        own = {
            name.split(".", 2)[2]: value
            for name, value in state.items()
            if name.startswith(f"layers.{number}.")
        }
        mixed = [
            own["inward.weight"] @ norm_of_sasrec(x, own["norm.weight"], own["norm.bias"])
            + own["inward.bias"]
            for x in tokens
        ]
        q, k, v = ([one[begun : begun + dim] for one in mixed] for begun in range(0, 3 * dim, dim))
        made = []
        for i in range(n):
            found = numpy.zeros(dim)
            for head in range(heads):
                at = slice(head * size, (head + 1) * size)
                shares = [math.exp(q[i][at] @ k[j][at] / math.sqrt(size)) for j in sees[i]]
                for j, share in zip(sees[i], shares):
                    found[at] += share / sum(shares) * v[j][at]
            y = tokens[i] + own["outward.weight"] @ found + own["outward.bias"]
            normed = norm_of_sasrec(y, own["inner_norm.weight"], own["inner_norm.bias"])
            inner = own["first.weight"] @ normed
            inner = numpy.maximum(inner + own["first.bias"], 0)
            made.append(y + own["second.weight"] @ inner + own["second.bias"])
        tokens = made
    return left(state, tokens, norm_of_sasrec)
