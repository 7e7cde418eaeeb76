"""Small batches are converted together, and are what each is alone."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.data import Column, Position, Shuffle, open_data
from migrate.data.position import Taken
from migrate.runtime.interface import Input
from migrate.runtime.strings import Strings
from migrate.training.reading import open_columns, reading_of
from semisync.common.errors import BadInput

ROWS = 1003
INPUTS = {
    "price": Input("float32", (None,), ["price:0"]),
    "vector": Input("float32", (None, 3), ["vector:0"]),
    "city": Input("string", (None,), ["city:0"]),
    "click": Input("float32", (None, 1), ["click:0"]),
}


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "clicks.parquet"
    rows = np.arange(ROWS)
    vectors = pa.array(np.arange(3.0 * ROWS, dtype=np.float32))
    table = {
        "row": rows,
        "price": rows / np.float32(8),
        "vector": pa.FixedSizeListArray.from_arrays(vectors, 3),
        "city": [f"city {row * row}" for row in rows],
        "click": (rows % 2).astype(np.float32),
        "day": rows // 100,
    }
    pq.write_table(pa.table(table), path, row_group_size=90)
    return str(path)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(1, 300),
    own=st.integers(0, 2),
    ranks=st.integers(1, 3),
    shuffle=st.one_of(st.none(), st.builds(Shuffle, st.integers(0, 9), st.integers(1, 400))),
    last=st.sampled_from(["drop", "keep"]),
    stop=st.integers(0, 5),
)
def test_batches_have_the_rows_of_their_places(clicks, size, own, ranks, shuffle, last, stop):
    more = {"shuffle": shuffle, "last": last, "rank": own % ranks, "ranks": ranks}
    reading = reading_of(INPUTS, {}, {}, "click", "day", "row")
    data = open_columns([clicks], reading, size, **more)
    found = []
    for batch in data:
        found.append(batch)
        if len(found) == stop:  # and from there on by what a checkpoint holds
            state = data.state_dict()
            data = open_columns([clicks], reading, size, **more)
            data.load_state_dict(state)
            found += data
            break
    alone = open_data([clicks], [Column("row", "key")], size, convert=lambda rows: rows, **more)
    for batch, rows in zip(found, alone, strict=True):
        place = rows.columns["row"].to_numpy()
        expected = torch.from_numpy(place).float()
        assert batch.keys.to_numpy().tolist() == place.tolist()
        assert torch.equal(batch.inputs["price"], expected / 8)
        assert torch.equal(batch.inputs["vector"], expected[:, None] * 3 + torch.arange(3.0))
        assert [text.decode() for text in batch.inputs["city"]] == [
            f"city {row * row}" for row in place
        ]
        assert torch.equal(batch.inputs["click"], expected[:, None] % 2)
        assert batch.labels.tolist() == (place % 2).tolist()
        assert list(batch.days) == (place // 100).tolist()
        assert batch.share == rows.share


def test_lists_are_as_wide_as_the_longest_of_their_batch(tmp_path):
    pq.write_table(pa.table({"item": [[1], [2], [3, 4, 5], [6]]}), tmp_path / "clicks.parquet")
    reading = reading_of(
        {"item": Input("int64", (None, None), ["item/indices:0", "item/values:0", "item/shape:0"])},
        {},
        {},
        None,
        None,
    )
    found = [one.inputs["item"] for one in open_columns([str(tmp_path)], reading, 2)]
    assert [shape.tolist() for _, _, shape in found] == [[2, 1], [2, 3]]


def test_the_position_of_rows_converted_together_is_the_one_after_them(clicks):
    schema, found = [Column("row", "key")], []

    def split(rows, size):
        found.append((rows.columns.num_rows, rows.position))
        return [rows] * (rows.columns.num_rows // size)

    data = open_data([clicks], schema, 2, last="drop", convert=lambda rows: rows, split=split)
    data.load_state_dict(data.state_dict(Position(0, (Taken(1, 2, 3),))))
    list(data)
    assert found == [(996, Position(epoch=1))]
    found.clear()
    shuffled = Shuffle(seed=1, buffer=100)
    more = {"convert": lambda rows: rows, "split": split, "shuffle": shuffled}
    list(open_data([clicks], schema, 2, last="keep", **more))
    assert found == [(1002, Position(0, (Taken(1, 2, 501),)))]


def test_a_graph_that_takes_one_number_of_rows_gets_it(clicks):
    inputs = {"price": Input("float32", (4,), ["price:0"])}
    data = open_columns([clicks], reading_of(inputs, {}, {}, None, None), 4, last="drop")
    assert {tuple(one.inputs["price"].shape) for one in data} == {(4,)}


def test_a_broken_block_leaves_the_other_batches_their_own_rows(clicks, tmp_path):
    shutil.copy(clicks, tmp_path)
    metadata = pq.ParquetFile(clicks).metadata.row_group(1).column(1)
    with open(tmp_path / "clicks.parquet", "r+b") as file:
        file.seek(metadata.data_page_offset)
        file.write(b"\xff" * 64)
    reading = reading_of(INPUTS, {}, {}, "click", None, "row")
    data = open_columns([str(tmp_path)], reading, 40, on_broken="skip")
    assert [batch.keys.to_pylist() for batch in data] == [
        [row for row in range(first, min(first + 40, ROWS)) if not 90 <= row < 180]
        for first in range(0, ROWS, 40)
    ]
    with pytest.raises(BadInput):
        list(open_columns([str(tmp_path)], reading, 40))


@pytest.mark.long
@given(st.lists(st.text(max_size=3), max_size=12), st.integers(1, 3), st.integers(1, 5))
def test_text_is_split_by_rows_as_torch_splits_a_tensor(texts, width, rows):
    texts = texts[: len(texts) // width * width]
    whole = Strings.of(np.array(texts, object)).reshape((-1, width) if texts else (0, width))
    places = torch.arange(len(texts)).reshape(whole.shape)
    found = whole.split(rows)
    expected = [whole[part] for part in places[:, 0].div(width, rounding_mode="floor").split(rows)]
    assert [one.numpy().tolist() for one in found] == [
        one.numpy().tolist() for one in expected if len(one)
    ]
