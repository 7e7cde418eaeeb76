"""A small click log, drawn from a seed: the raw features of every model of the zoo.

`draw(count, seed)` gives {feature: value}, where a value is an array with one row per example, or a
list of arrays of any length ("ragged"), which a model takes as a SparseTensor or pads.

With `odd=True` the rows also hold what the training rows lack: words and ids that no training step
saw, '' and -1 more often, empty lists, bytes that are not text, NaN where a model buckets it.
"""

import numpy as np

USERS, ITEMS, TAGS, FIELDS, HISTORY = 60, 50, 30, 6, 8
CITIES = [b"Oslo", b"Bergen", b"Malm\xc3\xb6", b"Turku", b"Riga", b"Vilnius"]
PLACES = [b"home", b"work", b"shop", b"road"]
KINDS = [b"news", b"film", b"song"]


def draw(count, seed, odd=False):
    """{feature: array or list of arrays} of `count` examples."""
    random = np.random.RandomState(seed)
    users, items = (USERS, ITEMS) if odd else (USERS - 20, ITEMS - 10)
    rows = dict(_numbers(random, count), **_ids(random, count, users, items, odd))
    rows.update(_lists(random, count, items, odd))
    if odd:
        _make_odd(rows)
    score = (
        0.8 * (rows["item_id"] % 3 == 0)
        + 0.5 * (rows["user"] % 2)
        + 0.3 * rows["stats"][:, 0]
        - 0.6
    )
    noise = random.randn(count) * 0.5
    rows["clicked"] = (score + noise > 0).astype(np.float32)
    rows["bought"] = rows["clicked"] * (random.rand(count) < 0.4).astype(np.float32)
    for name in ("clicked", "bought", "device", "city"):
        rows[name + "_column"] = rows[name].reshape(-1, 1)
    rows["hour_text"] = np.array([b"%d" % hour for hour in rows["hour"]], object)
    rows["watched"] = rows["item_id"].reshape(-1, 1)
    rows["grade"] = np.clip(np.floor(score + 1.5), 0, 2).astype(np.int64)
    rows["image"] += rows["grade"].reshape(-1, 1, 1, 1) * np.array([1.0, -0.5, 0.0], np.float32)
    rows["kind"] = np.array(KINDS, object)[rows["grade"]]
    rows["importance"] = random.choice([0.5, 1.0, 2.0], count).astype(np.float32)
    return rows


def take(rows, first, last):
    """Rows `first` to `last`, cyclically."""
    size = len(rows["clicked"])
    places = [place % size for place in range(first, last)]
    return {
        name: [value[place] for place in places] if isinstance(value, list) else value[places]
        for name, value in rows.items()
    }


def sparse(value):
    """(indices, values, shape) of a ragged feature, or of the rows of a dense one."""
    lengths = [len(each) for each in value]
    indices = [(row, column) for row, length in enumerate(lengths) for column in range(length)]
    return (
        np.array(indices, np.int64).reshape(-1, 2),
        np.concatenate(list(value)),
        np.array([len(lengths), max(lengths)], np.int64),
    )


def _make_odd(rows):
    """Values at which kernels differ: bytes that are not text, NaN in a bucketized column."""
    rows["item"][3:6] = [b"long" * 60, b"\xff\x00\n", b"\xc3\xa9"]
    rows["heat"][:6] = [np.nan, np.inf, -np.inf, 0.1, -0.0, np.nextafter(np.float32(0.1), -1)]
    rows["codes"][2:4, 1:] = [[-7, 2**40 + 3], [-(2**63), 2**63 - 1]]


def _numbers(random, count):
    return {
        "age": random.randint(10, 80, count).astype(np.float32),
        "heat": random.randn(count).astype(np.float32),
        "price": np.exp(random.randn(count)).astype(np.float32),
        "stats": random.randn(count, 3).astype(np.float32),
        "value": random.rand(count, FIELDS).astype(np.float32),
        "image": random.randn(count, 8, 8, 3).astype(np.float32),
    }


def _ids(random, count, users, items, odd):
    """Features with one value an example, or with a fixed number of them."""
    item_id = random.randint(0, items, count)
    cities, places = (
        (CITIES + [b"Paris", b""], PLACES + [b"moon", b""]) if odd else (CITIES, PLACES)
    )
    words = np.array([b"", b"red", b"blue", b"green", b"tall"] + [b"odd"] * odd, object)
    index = np.stack([random.randint(0, 10, count) + 10 * k for k in range(FIELDS)], 1)
    return {
        "user": random.randint(0, users, count),
        "item_id": item_id,
        "item": np.array([b"item%d" % each for each in item_id], object),
        "city": np.array(cities, object)[random.randint(0, len(cities), count)],
        "place": np.array(places, object)[random.randint(0, len(places), count)],
        "hour": random.randint(-1 if odd else 0, 26 if odd else 24, count),
        "device": random.randint(-1, 7 if odd else 4, count),
        "words": words[random.randint(0, len(words), (count, 4))],
        "codes": random.randint(-1, 9, (count, 3)),
        "index": index,
        "negative": random.randint(0, ITEMS, (count, 3)),
    }


def _lists(random, count, items, odd):
    """Features of any number of values, and the same padded, with their lengths."""
    lengths = random.randint(1, HISTORY + 1, count)
    if odd:
        lengths[::4] = 0
    history = [random.randint(1, items, length) for length in lengths]
    sizes = random.randint(0, 5, count)
    sizes[:3] = (0, 3, 0) if odd else (1, 3, 2)
    ids = [random.randint(0, TAGS if odd else TAGS - 8, size) for size in sizes]
    for each in ids:
        each[1:2] = each[:1][: len(each[1:2])]  # the second is the first again
    padded = np.zeros((count, HISTORY), np.int64)
    for row, each in enumerate(history):
        padded[row, : len(each)] = each
    weights = [random.choice([0.25, 0.5, 1.0, 2.0], size).astype(np.float32) for size in sizes]
    scores = [random.choice([-1.0, 0.0, 0.5, 2.0], size).astype(np.float32) for size in sizes]
    tags = [np.array([b"tag%d" % tag for tag in each], object) for each in ids]
    return {
        "tag_ids": ids,
        "tag_weights": weights,
        "tag_ids_filled": [each if len(each) else np.array([0]) for each in ids],
        "tag_weights_filled": [
            each if len(each) else np.array([1.0], np.float32) for each in weights
        ],
        "tag_scores": scores,  # some are not positive
        "tags": tags,
        "tag_text": np.array([b" ".join(each) for each in tags], object),
        "history_items": history,
        "history": padded,
        "history_length": lengths.astype(np.int32),
    }
