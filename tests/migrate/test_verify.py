"""`semisync verify`: what differs is found and named; what agrees is said with its confidence."""

import contextlib
import dataclasses
import json
import pickle
import random

import numpy as np
import pytest

import migrate
from migrate.conversion import convert
from migrate.stream import regions, writing
from migrate.targets import INDEXES
from migrate.verification import verify
from semisync import cli
from semisync.common.errors import BadInput, SemisyncError, UsageError
from tests.support.conversions import make_plan

TARGETS = ["dcp", "safetensors"]


@pytest.fixture(params=TARGETS)
def converted(tf2_checkpoints, tmp_path, monkeypatch, request):
    """A conversion in small chunks, not yet verified."""
    monkeypatch.setattr(regions, "CHUNK_BYTES", 96)
    monkeypatch.setattr(regions, "PART_BYTES", 400)
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    migrate.convert(plan, tmp_path / "out", target=request.param, verify=False)
    return tmp_path / "out"


def data_file(directory):
    return next(path for path in directory.iterdir() if path.suffix in (".distcp", ".safetensors"))


def flip(directory, row, source="user"):
    """One bit of the value that TensorFlow looks up for id `row`."""
    written = np.load(directory.parent / "expected.npz")[source][row]
    path = data_file(directory)
    data = bytearray(path.read_bytes())
    at = data.find(written.tobytes())
    assert at > 0
    data[at] ^= 1
    path.write_bytes(bytes(data))


def test_all_rows_slots_and_hashes_agree(tf2_checkpoints, converted):
    result = verify(tf2_checkpoints / "adagrad_ref", converted)
    assert result.verified, result.differences
    assert result.tensors == 11
    assert result.rows == 2 * (31 + 20 + 10) + 2 * 31 + 2 * 8 + 1
    assert result.hashes > 11


def test_one_flipped_bit_is_found_and_its_row_is_named(tf2_checkpoints, converted, capsys):
    (converted.parent / "expected.npz").symlink_to(tf2_checkpoints / "adagrad_ref.npz")
    flip(converted, 17)
    code = cli.main(["verify", str(tf2_checkpoints / "adagrad_ref"), str(converted), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (code, found["verified"], found["differing_rows"]) == (1, False, 1)
    first, second = found["differences"]
    assert "'ebc.embedding_bags.user.weight': 1 of the rows" in first
    assert first.endswith("the first is row 17")
    assert "SHA-256" in second


def test_every_row_that_differs_is_counted(tf2_checkpoints, converted):
    (converted.parent / "expected.npz").symlink_to(tf2_checkpoints / "adagrad_ref.npz")
    for row in (16, 17, 18):
        flip(converted, row)
    assert verify(tf2_checkpoints / "adagrad_ref", converted).differing_rows == 3


@pytest.mark.long
def test_a_hash_alone_that_differs_is_found(tf2_checkpoints, converted):
    path = converted / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["tensors"][0]["pieces"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(manifest))
    _, difference = verify(tf2_checkpoints / "adagrad_ref", converted).differences
    assert "the manifest has 0000" in difference


def test_an_index_that_is_not_as_it_was_written_is_found(tf2_checkpoints, converted, capsys):
    name = next(name for name in INDEXES.values() if (converted / name).exists())
    index = (converted / name).read_bytes()
    (converted / name).write_bytes(same_but_for_its_bytes(index))
    prefix = str(tf2_checkpoints / "adagrad_ref")
    for options in ([], ["--sample", "3"]):
        assert cli.main(["verify", prefix, str(converted), *options]) == 1
        found = capsys.readouterr().out.splitlines()
        assert found[0] == f"{name} is not as it was written: its SHA-256 differs"
        assert found[-1].startswith("not verified: compared ")


def same_but_for_its_bytes(index):
    """An index with another order of what it says, or with another space."""
    if not index.startswith(b"\x80"):
        return index + b" "
    metadata = pickle.loads(index)
    metadata.planner_data = dict(reversed(metadata.planner_data.items()))
    return pickle.dumps(metadata)


@pytest.mark.long
def test_of_an_older_manifest_it_says_that_the_index_was_not_checked(
    tf2_checkpoints, converted, capsys
):
    path = converted / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["index_sha256"], manifest["sha256"]
    path.write_text(json.dumps(manifest))
    assert cli.main(["verify", str(tf2_checkpoints / "adagrad_ref"), str(converted)]) == 0
    (name,) = [name for name in INDEXES.values() if (converted / name).exists()]
    assert capsys.readouterr().out.endswith(
        f"SHA-256 agree; not checked: {name}, of which a manifest of an earlier version has no "
        "SHA-256\n"
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data["tensors"].pop(), "is in the target, but not in the manifest"),
        (lambda data: data["tensors"][0].update(shape=[30, 8]), "in the manifest, float32"),
        (lambda data: data["tensors"][0].update(fqn="x"), "in the manifest, but not in the target"),
        (lambda data: data["tensors"][0].update(source="x"), "made from 'x', which is not there"),
        (lambda data: data["tensors"][0]["pieces"].pop(), "hashes of"),
        (lambda data: data.update(target="os"), "has the target 'os', expected one of dcp, saf"),
        (
            lambda data: next(
                one for one in data["tensors"] if one["partition_strategy"] == "mod"
            ).update(partition_strategy=None),
            "rows 0 to",
        ),
    ],
)
def test_a_manifest_that_lies_is_caught(tf2_checkpoints, converted, change, sentence):
    path = converted / "manifest.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    found = verify(tf2_checkpoints / "adagrad_ref", converted).differences
    assert any(sentence in one for one in found), found


def test_another_checkpoint_does_not_verify(tf2_checkpoints, converted):
    found = verify(tf2_checkpoints / "sgd", converted).differences
    assert any("differ from 'user'" in one for one in found)
    assert any("'user/Adagrad', which is not there" in one for one in found)


def test_a_truncated_target_does_not_verify(tf2_checkpoints, converted):
    path = data_file(converted)
    path.write_bytes(path.read_bytes()[:-2000])
    assert not verify(tf2_checkpoints / "adagrad_ref", converted).verified


@pytest.mark.long
def test_a_sample_says_how_sure_it_is(tf2_checkpoints, converted, capsys):
    prefix = str(tf2_checkpoints / "adagrad_ref")
    result = verify(prefix, converted, sample=5)
    assert (result.verified, result.tensors) == (True, 11)
    assert result.rows == 5 * 10 + 1
    assert result.bound == pytest.approx(1 - 0.05 ** (1 / 5))
    assert cli.main(["verify", prefix, str(converted), "--sample", "5"]) == 0
    assert "with 95% confidence at most 0.45 of any tensor's rows" in capsys.readouterr().out
    with pytest.raises(UsageError, match="at least one row"):
        verify(prefix, converted, sample=0)


def test_a_sample_finds_what_differs_in_every_row(tf2_checkpoints, converted):
    assert not verify(tf2_checkpoints / "sgd", converted, sample=1).verified


def test_a_directory_without_a_manifest_is_bad_input(tf2_checkpoints, tmp_path):
    with pytest.raises(BadInput, match=r"manifest\.json cannot be opened"):
        verify(tf2_checkpoints / "sgd", tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_a_conversion_that_wrote_wrong_bytes_is_not_kept(
    tf2_checkpoints, tmp_path, monkeypatch, target
):
    original = writing._Files.write

    def wrong(self, name, offset, data):
        copy = bytearray(data)
        copy[0] ^= 1
        original(self, name, offset, memoryview(copy))

    monkeypatch.setattr(writing._Files, "write", wrong)
    plan = make_plan(tf2_checkpoints / "sgd")
    with pytest.raises(SemisyncError, match="what was written is not what .* holds"):
        migrate.convert(plan, tmp_path / "out", target=target)
    assert list(tmp_path.iterdir()) == []
    assert dataclasses.is_dataclass(convert.convert(plan, tmp_path / "out", verify=False))


def test_a_manifest_that_was_changed_in_any_field_is_noticed(tf2_checkpoints, converted):
    path = converted / "manifest.json"
    path.write_text(path.read_text().replace('"learning_rate": 0.1', '"learning_rate": 0.2'))
    (difference,) = verify(tf2_checkpoints / "adagrad_ref", converted).differences
    assert difference.startswith("manifest.json is not as it was written")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data["tables"][0].update(rows="many"), "rows: expected int, found 'many'"),
        (lambda data: data["tensors"][0]["pieces"][0].pop("sha256"), "a Piece lacks sha256"),
        (lambda data: data["tensors"].append([]), "expected the fields of a Written"),
        (lambda data: data.update(colour="red"), "unknown field 'colour'"),
        (
            lambda data: data["tensors"][0].update(transform="twice"),
            r"manifest\.json: transform 'twice', expected one of copy, cast, int8, row_mean, hours",
        ),
    ],
)
def test_a_damaged_manifest_is_refused_by_the_field(tf2_checkpoints, converted, change, sentence):
    path = converted / "manifest.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match=sentence):
        verify(tf2_checkpoints / "adagrad_ref", converted)


@pytest.mark.long
def test_the_model_config_may_be_edited_where_it_does_not_speak_of_the_data(
    tf2_checkpoints, converted, capsys
):
    prefix, path = tf2_checkpoints / "adagrad_ref", converted / "model.json"
    written = path.read_text()
    path.write_text(written.replace('"weighted": false', '"weighted": true'))
    assert cli.main(["verify", str(prefix), str(converted)]) == 0
    assert "; not checked: model.json, which was edited since" in capsys.readouterr().out
    path.write_text(written.replace('"rows": 31', '"rows": 32'))
    assert "model.json has a table that" in verify(prefix, converted).differences[0]
    path.unlink()
    assert "model.json cannot be read" in verify(prefix, converted).differences[0]


def test_an_index_of_safetensors_that_is_wrong_or_missing_is_noticed(tf2_checkpoints, tmp_path):
    prefix = tf2_checkpoints / "sgd"
    migrate.convert(make_plan(prefix), tmp_path / "out", target="safetensors", verify=False)
    path = tmp_path / "out" / "model.safetensors.index.json"
    path.write_text(path.read_text().replace("user.weight", "usher.weight"))
    assert "does not tell which file" in verify(prefix, tmp_path / "out").differences[0]
    path.unlink()
    assert "index.json cannot be read" in verify(prefix, tmp_path / "out").differences[0]


@pytest.mark.long
def test_no_flipped_bit_of_the_files_beside_the_data_ends_in_anything_but_a_sentence(
    tf2_checkpoints, converted
):
    prefix, dice = tf2_checkpoints / "adagrad_ref", random.Random(5)
    beside = [one for one in converted.iterdir() if one != data_file(converted)]
    for path in beside:
        data = path.read_bytes()
        for at in dice.sample(range(len(data)), 15):
            path.write_bytes(
                data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
            )
            with contextlib.suppress(SemisyncError):
                verify(prefix, converted, sample=1)
        path.write_bytes(data)
    assert verify(prefix, converted).verified
