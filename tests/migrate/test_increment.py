"""DeepRec's increments: whole variables and changed rows, laid over the full checkpoint."""

import json
import pathlib
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import migrate
from migrate.targets.reading.torch_readers import read
from migrate.torchrec import dense_variables
from migrate.verification import verify
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.migrate.raw_tables import write_tfra
from tests.support.bundles import write


def rows_of(stem, keys, values):
    return {f"{stem}-sparse_incr_keys": keys, f"{stem}-sparse_incr_values": values}


@st.composite
def variables(draw):
    """(parts of a table, changed rows of each, interleave, first row, rows a chunk)."""
    rows, count = draw(st.integers(1, 20)), draw(st.integers(1, 4))
    count = min(count, rows)
    parts = np.array_split(np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2), count)
    kind = draw(st.sampled_from([np.int32, np.int64]))
    keys = [np.array(sorted(draw(st.sets(st.integers(0, len(part) - 1)))), kind) for part in parts]
    first = draw(st.integers(0, rows))
    return parts, keys, draw(st.booleans()), first, draw(st.integers(1, rows))


@settings(max_examples=25, deadline=None)
@given(variables())
def test_changed_rows_are_read_in_whatever_order_and_pieces(case):
    parts, keys, interleave, first, step = case
    expected = [part.copy() for part in parts]
    increment = {}
    for number, key in enumerate(keys):
        expected[number][key] = -1 - np.arange(len(key))[:, None] - 100 * number
        stem = f"t/part_{number}" if len(parts) > 1 else "t"
        increment.update(rows_of(stem, key, expected[number][key]))
    dealt = np.concatenate(expected)
    if interleave:
        dealt = np.array(
            [expected[row % len(parts)][row // len(parts)] for row in range(len(dealt))]
        )
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        full = write(folder / "full", {"t": parts if len(parts) > 1 else parts[0]})
        newer = write(folder / "newer", increment)
        with migrate.open_checkpoint(full, newer=newer) as checkpoint:
            assert np.array_equal(checkpoint.read("t"), np.concatenate(expected))
            some = slice(first, first + step)
            assert np.array_equal(checkpoint.read("t", some), np.concatenate(expected)[some])
            chunks = checkpoint.chunks("t", step, interleave, slice(first, None))
            found = [rows for _, rows in chunks]
            assert np.array_equal(np.concatenate([np.empty((0, 2)), *found]), dealt[first:])


@pytest.fixture(scope="module")
def prefixes(tmp_path_factory):
    """A model in two parts with its accumulator, and an increment with rows and whole variables."""
    folder = tmp_path_factory.mktemp("increment")
    user = np.arange(20, dtype=np.float32).reshape(5, 4)
    full = {
        "user": [user[:3], user[3:]],
        "user/Adagrad": [user[:3] + 100, user[3:] + 100],
        "kernel": np.ones((2, 3), np.float32),
        "global_step": np.int64(10),
    }
    no_rows = (np.empty(0, np.int64), np.empty((0, 4), np.float32))
    increment = {
        **rows_of("user/part_0", np.array([0, 2]), np.full((2, 4), -1, np.float32)),
        **rows_of("user/part_1", *no_rows),
        **rows_of("user/part_0/Adagrad", np.array([2]), np.full((1, 4), -2, np.float32)),
        **rows_of("user/part_1/Adagrad", *no_rows),
        "kernel": np.full((2, 3), 7, np.float32),
        "global_step": np.int64(12),
    }
    return write(folder / "full", full), write(folder / "newer", increment), increment


def test_the_command_converts_and_verifies_both_together(prefixes, tmp_path, capsys):
    full, newer, _ = prefixes
    out = tmp_path / "out"
    chosen = ["--tables", "^user$", "--partition-strategy", "mod"]
    assert main(["convert", str(full), str(out), "--newer", str(newer), *chosen]) == 0
    found = {
        "ebc.embedding_bags.user.weight": np.empty((5, 4)),
        "optim.state.ebc.embedding_bags.user.weight.user.momentum1": np.empty((5, 4)),
    }
    import torch

    found = {name: torch.empty(5, 4) for name in found}
    read(str(out), found)
    weight, state = (one.numpy() for one in found.values())
    assert weight[:, 0].tolist() == [-1, 12, 4, 16, -1]  # rows 0, 1, 2 | 3, 4 dealt out in turn
    assert state[:, 0].tolist() == [100, 112, 104, 116, -2]
    dense = dense_variables(str(out))
    assert (dense["kernel"].unique().tolist(), dense["global_step"].item()) == ([7], 12)
    assert main(["verify", str(full), str(out)]) == 0
    assert verify(full, out, sample=3).verified
    plain = tmp_path / "plain"
    assert main(["convert", str(full), str(plain), *chosen]) == 0
    (plain / "manifest.json").write_text((out / "manifest.json").read_text())
    assert main(["verify", str(full), str(plain)]) == 1
    capsys.readouterr()


def test_both_are_inspected_together(prefixes, checkpoints, capsys):
    full, newer, _ = prefixes
    assert main(["inspect", str(full), "--newer", str(newer), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["prefix"], found["newer"]) == (str(full), str(newer))
    rows = np.arange(20).reshape(5, 4)
    rows[[0, 2]] = -1
    means = {one["name"]: one["norm_mean"] for one in found["variables"]}
    assert means["user"] == pytest.approx(np.linalg.norm(rows, axis=1).mean())
    assert means["kernel"] == pytest.approx(7 * 3**0.5)
    deeprec, counts = str(checkpoints / "deeprec"), []
    for more in ([], ["--newer", deeprec + "_incr"]):
        assert main(["inspect", deeprec, "--json", *more]) == 0
        (table,) = json.loads(capsys.readouterr().out)["hash_tables"]
        counts.append(table["rows"])
    assert counts == [7, 8]


def test_what_no_increment_goes_with_is_not_inspected(prefixes, tmp_path, capsys):
    full, newer, _ = prefixes
    raw = write_tfra(tmp_path / "raw", "t", [([4], [[1.0]])])
    chosen = ["--tables", "^user$", "--partition-strategy", "mod"]
    assert main(["convert", str(full), str(tmp_path / "out"), *chosen]) == 0
    capsys.readouterr()
    for path, sentence in [(raw, "it is not an increment"), (tmp_path / "out", "is a directory")]:
        assert main(["inspect", str(path), "--newer", str(newer)]) == 3
        said = capsys.readouterr().err
        assert sentence in said and said.count("\n") == 1


def test_rows_by_ids_come_along(checkpoints, tmp_path):
    full, newer = checkpoints / "deeprec", checkpoints / "deeprec_incr"
    with migrate.open_checkpoint(full, newer=newer) as checkpoint:
        plan = migrate.plan(checkpoint)
    assert migrate.Plan.from_yaml(plan.to_yaml()).newer == str(newer)
    manifest = migrate.convert(plan, tmp_path / "out")
    assert manifest.tables[0].ids.count == 8  # 7 of the full one and one that was admitted since
    assert verify(full, tmp_path / "out").verified


ONE = np.ones((1, 4), np.float32)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kernel": None}, "neither 'kernel' nor rows of it"),
        ({"kernel": np.ones((3, 3), np.float32)}, r"has 'kernel' as float32 \[3, 3\]"),
        ({"other": ONE}, "has 'other', which is not in"),
        (rows_of("item", np.array([0]), ONE), "has 'item', which is not in"),
        (rows_of("user/part_0", np.array([3]), ONE), "not ascending rows below 3"),
        (rows_of("user/part_0", np.array([-1]), ONE), "not ascending rows below 3"),
        (rows_of("user/part_0", np.array([1, 0]), np.ones((2, 4), np.float32)), "not ascending"),
        (rows_of("user/part_0", np.array([1]), np.ones((1, 3), np.float32)), r"float32 \[1, 3\]"),
        (rows_of("user/part_0", np.array([1]), np.ones((1, 4))), r"float64 \[1, 4\], expected"),
        ({"user/part_0-sparse_incr_values": None}, "its values are not there"),
        (rows_of("user/part_2", np.array([0]), ONE), "expected those of 2 parts"),
        (rows_of("user", np.array([0]), ONE), "expected those of 2 parts"),
    ],
)
def test_what_is_no_increment_is_refused(prefixes, tmp_path, changes, sentence):
    full, _, increment = prefixes
    tensors = {**increment, **changes}
    newer = write(tmp_path / "newer", {k: v for k, v in tensors.items() if v is not None})
    with pytest.raises(BadInput, match=sentence):
        migrate.open_checkpoint(full, newer=newer)


def test_rows_of_another_type_than_deeprec_writes_are_refused(tmp_path):
    full = write(tmp_path / "full", {"t": np.ones((3, 4))})
    newer = write(tmp_path / "newer", rows_of("t", np.array([0]), ONE))
    with pytest.raises(BadInput, match=r"it is float64 \[3, 4\], and DeepRec writes rows of float"):
        migrate.open_checkpoint(full, newer=newer)


def test_damaged_rows_are_found_when_they_are_laid(prefixes, tmp_path):
    full, _, increment = prefixes
    newer = write(tmp_path / "newer", increment)
    (data,) = tmp_path.glob("newer.data*")
    content = bytearray(data.read_bytes())
    content[content.find(np.full(8, -1, np.float32).tobytes())] ^= 1
    data.write_bytes(content)
    with pytest.raises(BadInput, match="crc32c"):
        migrate.open_checkpoint(full, newer=newer)
