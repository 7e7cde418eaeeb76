"""Rows by their keys, over files, stops and numbers of ranks: none is lost, none comes twice."""

import json
import pathlib
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.data import Column, Shuffle, open_data
from semisync.common.errors import BadInput

SCHEMA = [Column("row", "key"), Column("id", "ids")]


def write(folder, sizes, group):
    """Files of these sizes; the key of a row is its number among all."""
    first = 0
    for number, size in enumerate(sizes):
        keys = np.arange(first, first + size)
        path = pathlib.Path(folder, f"{number:03}.parquet")
        pq.write_table(pa.table({"row": keys, "id": keys % 7}), path, row_group_size=group)
        first += size
    return first


def opened(folder, size, ranks=1, shuffle=None, last="drop"):
    return [
        open_data(folder, SCHEMA, size, last=last, shuffle=shuffle, rank=rank, ranks=ranks)
        for rank in range(ranks)
    ]


def keys_of(batch):
    return batch.keys["row"].to_pylist()


def run(data, steps):
    """At most `steps` global batches: the keys, and the state that all ranks agree on."""
    running = [iter(one) for one in data]
    seen = []
    for _ in range(min(steps, data[0].batches)):
        seen += [key for one in running for key in keys_of(next(one))]
    states = [json.loads(json.dumps(one.state_dict())) for one in data]
    assert all(state == states[0] for state in states)
    for one in data:
        one.close()
    return seen, states[0]


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    group=st.integers(1, 30),
    shuffle=st.one_of(st.none(), st.builds(Shuffle, st.integers(0, 9), st.integers(1, 80))),
    runs=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 7), st.integers(0, 4)), max_size=3),
)
def test_no_row_is_lost_or_repeated_over_stops_and_other_numbers_of_ranks(
    sizes, group, shuffle, runs
):
    with tempfile.TemporaryDirectory() as folder:
        rows = write(folder, sizes, group)
        seen, state = [], None
        for ranks, size, steps in [*runs, (2, 5, 1000)]:
            data = opened(folder, size, ranks, shuffle, last="pad")
            for one in data:
                if state is not None:
                    one.load_state_dict(state)
            if data[0].epoch:
                break
            keys, state = run(data, steps)
            seen += keys
        assert sorted(seen) == list(range(rows))
        assert state["position"] == [1, []]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write(folder, [500, 300, 205], 90)
    return folder


@pytest.mark.parametrize("shuffle", [None, Shuffle(5, 200)])
def test_two_ranks_then_four_then_three_read_every_row_once(folder, shuffle):
    first, state = run(opened(folder, 20, 2, shuffle), 7)
    data = opened(folder, 20, 4, shuffle)
    for one in data:
        one.load_state_dict(state)
    second, state = run(data, 3)
    data = opened(folder, 20, 3, shuffle, last="pad")
    for one in data:
        one.load_state_dict(state)
    third, state = run(data, 1000)
    assert (len(first), len(second), len(third)) == (280, 240, 485)
    assert sorted(first + second + third) == list(range(1005))
    if shuffle is None:
        assert first + second + third == list(range(1005))


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("shuffle", [None, Shuffle(5, 200)])
def test_after_a_stop_the_batches_are_those_of_a_run_without_one(folder, shuffle, ranks):
    def batches(one, epochs):
        return [(batch.position, keys_of(batch)) for _ in range(epochs) for batch in one]

    for rank in range(ranks):
        whole = batches(opened(folder, 30, ranks, shuffle)[rank], 2)
        for stop in (1, 5, len(whole) // 2, len(whole) - 1):
            data = opened(folder, 30, ranks, shuffle)[rank]
            data.load_state_dict(data.state_dict(whole[stop - 1][0]))
            left = 2 - data.epoch
            assert batches(data, left) == whole[stop:]


def test_the_state_counts_what_was_delivered_not_what_was_read_ahead(folder):
    (data,) = opened(folder, 10)
    for number, batch in enumerate(data, 1):
        assert data.state_dict()["position"] == [0, [[1, 10, number]]]
        assert data.state_dict(batch.position) == data.state_dict()
        if number == 5:
            break
    (again,) = opened(folder, 10)
    again.load_state_dict(data.state_dict())
    assert keys_of(next(iter(again))) == list(range(50, 60))


def test_leaving_the_loop_keeps_the_place_and_the_next_epoch_follows_the_last(folder):
    (data,) = opened(folder, 100, shuffle=Shuffle(1))
    seen = [keys_of(batch) for _, batch in zip(range(4), data)]
    assert data.batches == 6
    seen += [keys_of(batch) for batch in data]
    assert len(set(sum(seen, []))) == 1000 and data.epoch == 1
    assert sorted(sum(seen, [])) != sorted(sum((keys_of(batch) for batch in data), []))
    assert data.epoch == 2


def test_ranks_have_as_many_batches_whatever_the_number_of_files(folder):
    for ranks in (1, 2, 7):
        for last, expected in (("drop", 1005 // (ranks * 30)), ("pad", -(-1005 // (ranks * 30)))):
            data = opened(folder, 30, ranks, last=last)
            assert [len(list(one)) for one in data] == [expected] * ranks


def test_padding_has_no_ids_and_is_told_from_rows(folder):
    *_, batch = opened(folder, 100, last="pad")[0]
    assert batch.rows == 5 and len(batch.keys["row"]) == 5
    assert batch.sparse["id"].lengths().tolist() == [1] * 5 + [0] * 95


def test_the_order_in_which_files_are_given_changes_nothing(folder):
    files = sorted(folder.iterdir())
    (one,), (other,) = opened(files, 30), opened([*files[::-1], str(folder)], 30)
    assert one.digest == other.digest
    assert [keys_of(batch) for batch in one] == [keys_of(batch) for batch in other]


def test_the_digest_is_of_the_files_wherever_they_lie(folder, tmp_path):
    (one,) = opened(folder, 30)
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert opened(tmp_path, 30)[0].digest == one.digest
    (tmp_path / "002.parquet").rename(tmp_path / "02.parquet")
    assert opened(tmp_path, 30)[0].digest != one.digest


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"digest": "0" * 16}, "files were added, removed or changed"),
        ({"shuffle": None}, "the state is of the shuffle"),
        ({"position": [0, [[1, 30, 900]]]}, "took 900 batches of 30 rows, but only 33 were left"),
        ({"position": "x"}, "is not a position"),
        ({"schema": "semisync.data/9"}, "this is not the state of a data set"),
    ],
)
def test_a_state_of_something_else_is_refused(folder, change, sentence):
    (data,) = opened(folder, 30, shuffle=Shuffle())
    with pytest.raises(BadInput, match=sentence):
        data.load_state_dict({**data.state_dict(), **change})
