"""Draws a click log whose true click probabilities are known.

Each row is one impression of an item to a user. Its log-odds are a factorisation machine's
(Rendle 2010) over the row's ids, in the weights of its day d:

    logit = bias[d] + sum_f w_f[d, id_f] + sum over field pairs <v_f[id_f], v_g[id_g]>

so that a DeepFM, which sees only the ids, can learn it. The following makes it behave like a real
log:

1. Ids are Zipf-distributed and hashed to 64 bits; most are rare, a few carry most of the rows. A
   user has 7 rows on average, as a `device_ip` has 6 in Avazu's log of 10 days.
2. What matters is learnable: a user's and an item's pairwise effects come from its segment and its
   category, which have few values; own effects are moderate.
3. Time drifts: popularity and first-order weights walk at random from day to day (stationary
   AR(1) walks), and a part of the items appears only after the first day.
4. Numbers come bucketised: a user's age (a hump), an item's price (falling), its age in days.

The log-odds are scaled to a fixed spread and shifted to a fixed click rate, which gives a
Bayes-optimal AUC of about 0.8 for every seed and size.
"""

from typing import Dict, NamedTuple

import numpy as np

from semisync.common.errors import UsageError
from semisync.demo.data.click_log import ClickLog
from semisync.demo.data.hashing import hash_integers

ROWS = 384_000
DAYS = 10
CATEGORICAL = ("user", "item", "segment", "category", "publisher", "device", "hour", "position")
NUMERIC = ("user_age", "price", "item_age")

_SIZES = {"user": 60_000, "item": 20_000, "segment": 20, "category": 30, "publisher": 2_000}
_SIZES.update({"device": 6, "hour": 24, "position": 8})
_OWN_EFFECT = {"user": 0.2, "item": 0.4, "segment": 0.8, "category": 0.8}
_OWN_EFFECT.update({"publisher": 0.6, "device": 0.5, "hour": 0.3, "position": 0.7})
_PAIRED = ("segment", "category", "device")
_RANK = 2
_PAIR_EFFECT = 0.6  # standard deviation of one pair of fields
_DAILY_DRIFT = 0.15  # share of a weight's standard deviation that one day replaces
_NEW_ITEMS = 0.3  # share of the items that appear after the first day
_CLICK_RATE = 0.15
_SPREAD = 1.35  # standard deviation of the log-odds


def generate(rows: int = ROWS, seed: int = 0) -> ClickLog:
    """Draws a click log of 10 days.

    Args:
        rows: at least 1,000.
        seed: not negative; the same seed gives the same log.

    Returns:
        A log of 8 categorical and 3 numeric fields, with its `truth`.

    Raises:
        UsageError: a row count or a seed out of range.
    """
    if rows < 1000:
        raise UsageError(f"rows is {rows}, expected at least 1000 for {DAYS} days of clicks")
    if seed < 0:
        raise UsageError(f"seed is {seed}, expected a number that is not negative")
    rng = np.random.default_rng(seed)
    days = np.sort(rng.integers(0, DAYS, rows))
    days -= days[0]
    world = _World.draw(rng)
    values = world.impressions(days, rng)
    truth = _probabilities(world.log_odds(days, values, rng))
    names = CATEGORICAL + NUMERIC
    return ClickLog(
        name=f"generated, seed {seed}",
        fields=names,
        numeric=len(NUMERIC),
        ids=np.stack([hash_integers(name, values[name]) for name in names], axis=1),
        labels=(rng.random(rows) < truth).astype(np.float32),
        days=days.astype(np.int32),
        truth=truth,
    )


class _World(NamedTuple):
    """The traits of users and items; arrays indexed by user or item."""

    segment: np.ndarray  # of a user
    age: np.ndarray  # of a user: bucket 0..9
    category: np.ndarray  # of an item
    price: np.ndarray  # of an item: bucket 0..9
    born: np.ndarray  # of an item: the day on which it appears; item_age is capped at 9
    popularity: np.ndarray  # [days, items], unnormalised

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "_World":
        users, items = _SIZES["user"], _SIZES["item"]
        age = np.clip(rng.normal(4, 2, users), 0, 9).astype(np.int64)
        late = rng.random(items) < _NEW_ITEMS
        # Items of the first day are 0 to 9 days old by then.
        born = np.where(late, rng.integers(1, DAYS, items), -rng.integers(0, 10, items))
        alive = born <= np.arange(DAYS)[:, None]
        fame = np.exp(0.7 * _walk(rng, items)) * _zipf(rng, items, 1.05)
        return cls(
            segment=_choose(rng, _zipf(rng, _SIZES["segment"], 0.7), users),
            age=age,
            category=_choose(rng, _zipf(rng, _SIZES["category"], 0.7), items),
            price=rng.integers(0, 10, items),
            born=born,
            popularity=np.where(alive, fame, 0),
        )

    def impressions(self, days: np.ndarray, rng: np.random.Generator) -> Dict[str, np.ndarray]:
        """The impressions: {field: int64 [rows]}, with hours that rise within a day."""
        rows = len(days)
        user = _choose(rng, _zipf(rng, _SIZES["user"], 0.9), rows)
        per_day = np.bincount(days, minlength=DAYS)
        item = np.concatenate([_choose(rng, *day) for day in zip(self.popularity, per_day)])
        busy = 1 + 0.8 * np.sin((np.arange(24) - 9) * np.pi / 12)
        hour = _choose(rng, busy, rows)
        return {
            "user": user,
            "item": item,
            "segment": self.segment[user],
            "category": self.category[item],
            "publisher": _choose(rng, _zipf(rng, _SIZES["publisher"], 1.1), rows),
            "device": _choose(rng, 0.5 ** np.arange(_SIZES["device"]), rows),
            "hour": hour[np.lexsort((hour, days))],
            "position": _choose(rng, 0.8 ** np.arange(_SIZES["position"]), rows),
            "user_age": self.age[user],
            "price": self.price[item],
            "item_age": np.minimum(days - self.born[item], 9),
        }

    def log_odds(
        self, days: np.ndarray, values: Dict[str, np.ndarray], rng: np.random.Generator
    ) -> np.ndarray:
        """The factorisation machine of the module's docstring, before scaling; [rows]."""
        total = 0.1 * _walk(rng, 1)[days, 0]
        for field, effect in _OWN_EFFECT.items():
            total += effect * _walk(rng, _SIZES[field])[days, values[field]]
        scale = np.sqrt(_PAIR_EFFECT / np.sqrt(_RANK))
        vectors = [scale * rng.normal(size=(_SIZES[f], _RANK))[values[f]] for f in _PAIRED]
        summed = sum(vectors)
        # All pairs at once: ((sum v)^2 - sum v^2) / 2, as in Rendle's equation 3.
        total += 0.5 * (np.square(summed).sum(1) - sum(np.square(v).sum(1) for v in vectors))
        hump = -0.06 * np.square(values["user_age"] - 4.0)
        return total + hump - 0.08 * values["price"] - 0.08 * values["item_age"]


def _walk(rng: np.random.Generator, size: int) -> np.ndarray:
    """Standard normal weights that drift from day to day and keep their spread; [days, size]."""
    keep = np.sqrt(1 - _DAILY_DRIFT**2)
    steps = rng.normal(size=(DAYS, size))
    for day in range(1, DAYS):
        steps[day] = keep * steps[day - 1] + _DAILY_DRIFT * steps[day]
    return steps


def _zipf(rng: np.random.Generator, size: int, exponent: float) -> np.ndarray:
    """(rank + 9)^-exponent (Mandelbrot's form: no id carries a tenth of the rows), shuffled."""
    return rng.permutation((np.arange(size) + 10.0) ** -exponent)


def _choose(rng: np.random.Generator, weights: np.ndarray, count: int) -> np.ndarray:
    """`count` indices drawn in proportion to the weights, by inversion; int64."""
    cumulative = np.cumsum(weights)
    drawn = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    return np.minimum(drawn, len(weights) - 1)


def _probabilities(log_odds: np.ndarray) -> np.ndarray:
    """Scales to the fixed spread, then finds by bisection the shift that gives the click rate."""
    scaled = (log_odds - log_odds.mean()) * (_SPREAD / log_odds.std())
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if _sigmoid(scaled + middle).mean() < _CLICK_RATE
            else (
                low,
                middle,
            )
        )
    return _sigmoid(scaled + low)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))
