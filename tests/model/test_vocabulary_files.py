"""A graph fills its lookup tables from files of its own directory, and from those that it is let
have by name; no other file of the machine gets into a model."""

import os
import shutil

import numpy as np
import pandas as pd
import pytest

import migrate
from migrate.model import vocabulary_files
from semisync import cli
from semisync.common.errors import BadInput
from semisync.storage.within import within
from tests.support.control_flow import control_flow

tf = pytest.importorskip("tensorflow").compat.v1
meta_graph_pb2 = pytest.importorskip("tensorflow.core.protobuf.meta_graph_pb2")
saved_model_pb2 = pytest.importorskip("tensorflow.core.protobuf.saved_model_pb2")

WORDS = "red\nblue\nfar\n"
LINES = (tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)


def build(words, kernel):
    word = tf.placeholder(tf.string, [None], name="word")
    clicked = tf.placeholder(tf.float32, [None, 1], name="clicked")
    ids = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(str(words), tf.string, *LINES), 3
    ).lookup(word)
    logits = tf.identity(tf.matmul(tf.one_hot(ids, 4), kernel), name="logits")
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits)
    return tf.reduce_mean(loss)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model with a vocabulary, which its own directory does not have."""
    folder, job = tmp_path_factory.mktemp("trained"), tmp_path_factory.mktemp("job")
    (job / "words.txt").write_text(WORDS)
    kernel = np.float32([[0.1], [0.2], [0.3], [0.0]])
    with control_flow(1), tf.Graph().as_default(), tf.Session() as session:
        loss = build(job / "words.txt", tf.get_variable("kernel", initializer=kernel))
        tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        tf.train.Saver().save(session, str(folder / "model.ckpt"))
    return folder


@pytest.fixture
def naming(trained, tmp_path):
    """A function: the prefix of the model with other names of its vocabulary's file."""

    def write(name):
        folder = tmp_path / "strange"
        if not folder.exists():
            shutil.copytree(trained, folder)
        meta = tf.MetaGraphDef.FromString((folder / "model.ckpt.meta").read_bytes())
        for node in meta.graph_def.node:
            texts = node.attr["value"].tensor.string_val
            if node.op == "Const" and texts and texts[0].endswith(b"words.txt"):
                texts[0] = os.fsencode(name)
        (folder / "model.ckpt.meta").write_bytes(meta.SerializeToString())
        return folder / "model.ckpt"

    return write


def refused(prefix, out, capsys, *options):
    """What `convert --model` says as it ends with exit code 3 and leaves nothing."""
    assert cli.main(["convert", str(prefix), str(out), "--model", *options]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert not out.exists() and not (out.parent / f".{out.name}.partial").exists()
    return err


@pytest.mark.parametrize(
    "name",
    ["{}/secret", "../secret", "{}/strange/../secret", "", "/", "..", ".", "a\0b", "http://x/y"],
)
def test_a_file_outside_of_the_graphs_directory_does_not_get_into_the_model(
    naming, tmp_path, capsys, monkeypatch, name
):
    (tmp_path / "secret").write_text("a private key\n")
    monkeypatch.chdir(tmp_path / "strange" if (tmp_path / "strange").exists() else tmp_path)
    prefix = naming(name.format(tmp_path))
    said = refused(prefix, tmp_path / "out", capsys)
    assert "the lookup table 'hash_table' is filled from " in said
    with pytest.raises(BadInput, match="the lookup table 'hash_table' is filled from "):
        migrate.load_model(prefix)


def test_the_sentence_says_what_to_type_and_that_lets_the_file_in(naming, tmp_path, capsys):
    secret = tmp_path / "my secret.txt"
    secret.write_text(WORDS)
    prefix, out = naming(secret), tmp_path / "out"
    said = refused(prefix, out, capsys)
    assert f"type --asset '{secret}' (in Python: assets=[...]), or put it there, as " in said
    assert refused(prefix, out, capsys, "--asset", str(tmp_path / "another.txt")) == said
    assert cli.main(["convert", str(prefix), str(out), "--model", "--asset", str(secret)]) == 0
    assert "guess" not in capsys.readouterr().out
    assert (out / "assets" / secret.name).read_text() == WORDS


def as_link(path, tmp_path):
    (tmp_path / "secret").write_text(WORDS)
    path.symlink_to(tmp_path / "secret")


def as_folder_that_is_a_link(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / path.name).write_text(WORDS)
    (path.parent / "assets").symlink_to(tmp_path / "elsewhere")


def as_fifo(path, _):
    os.mkfifo(path)


def as_folder(path, _):
    path.mkdir()


def as_large_file(path, _):
    path.touch()
    os.truncate(path, vocabulary_files.MOST + 1)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (as_link, "is a link out of it"),
        (as_folder_that_is_a_link, "is a link out of it"),
        (as_fifo, "which is not a regular file; expected a text file"),
        (as_folder, "which is not a regular file; expected a text file"),
        (as_large_file, "which has 1073741825 bytes; expected at most 1073741824"),
    ],
)
@pytest.mark.parametrize("name", ["new_words.txt", "/data/new_words.txt"])
def test_only_a_regular_file_of_bounded_size_is_taken(
    naming, tmp_path, capsys, make, sentence, name
):
    prefix = naming(name)
    make(prefix.parent / "new_words.txt", tmp_path)
    assert sentence in refused(prefix, tmp_path / "out", capsys)


@pytest.mark.parametrize("device", ["fifo", "/dev/zero"])
def test_a_pipe_or_a_device_is_not_opened_even_where_it_is_let_in(naming, tmp_path, capsys, device):
    os.mkfifo(tmp_path / "fifo")
    path = str(tmp_path / device)
    said = refused(naming(path), tmp_path / "out", capsys, "--asset", path)
    assert f"is filled from {path}, which is not a regular file" in said


def test_a_relative_name_begins_at_the_graph_not_at_the_current_directory(
    naming, tmp_path, monkeypatch
):
    prefix = naming("lists/some.txt")
    for folder, text in ((tmp_path, "secret\n" * 3), (prefix.parent, WORDS)):
        (folder / "lists").mkdir()
        (folder / "lists" / "some.txt").write_text(text)
    monkeypatch.chdir(tmp_path)
    module = migrate.load_model(prefix)
    assert module({"word": ["blue"]}).item() == pytest.approx(0.2)
    assert module.notes == []


@pytest.mark.parametrize("place", ["some.txt", "assets/some.txt"])
def test_a_file_of_the_same_name_beside_the_graph_is_a_guess_that_is_told(
    naming, tmp_path, capsys, place
):
    prefix = naming("/data/some.txt")
    file = prefix.parent / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(WORDS)
    note = (
        f"a vocabulary is a guess: the graph names /data/some.txt, and {file} has the same name; "
        "--asset /data/some.txt takes the file that is named"
    )
    assert migrate.load_model(prefix).notes == [note]
    assert cli.main(["inspect", str(prefix), "--graph"]) == 0
    assert f"Note: {note}." in capsys.readouterr().out
    assert cli.main(["convert", str(prefix), str(tmp_path / "out"), "--model"]) == 0
    assert f"note: {note}\n" in capsys.readouterr().out


def test_two_files_of_one_name_are_not_guessed_to_be_the_same(tmp_path):
    prefix = tmp_path / "model.ckpt"
    (tmp_path / "words.txt").write_text(WORDS)
    with tf.Graph().as_default(), tf.Session() as session:
        word = tf.placeholder(tf.string, [None], name="word")
        for name in ("one", "other"):
            initializer = tf.lookup.TextFileInitializer(
                f"/data/{name}/words.txt", tf.string, *LINES
            )
            word = tf.as_string(tf.lookup.StaticHashTable(initializer, 3).lookup(word))
        score = tf.string_to_number(word) * tf.get_variable("scale", [])
        tf.identity(score, name="score")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(prefix))
    with pytest.raises(BadInput, match="names two files, /data/other/words.txt and /data/one/wor"):
        migrate.load_model(prefix, output="score")


@pytest.mark.parametrize("asset", ["../../secret", "{}/secret", "link"])
def test_an_asset_of_a_saved_model_lies_among_its_assets(tmp_path, capsys, asset):
    (tmp_path / "words.txt").write_text(WORDS)
    (tmp_path / "secret").write_text("a private key\n")
    export = tmp_path / "export"
    with tf.Graph().as_default(), tf.Session() as session:
        initializer = tf.lookup.TextFileInitializer(str(tmp_path / "words.txt"), tf.string, *LINES)
        word = tf.placeholder(tf.string, [None], name="word")
        ids = tf.lookup.StaticHashTable(initializer, 3).lookup(word)
        score = tf.cast(ids, tf.float32) * tf.get_variable("scale", [])
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        tf.saved_model.simple_save(session, str(export), {"word": word}, {"score": score})
    assert migrate.load_model(export).notes == []
    (export / "assets" / "link").symlink_to(tmp_path / "secret")
    saved = saved_model_pb2.SavedModel.FromString((export / "saved_model.pb").read_bytes())
    (packed,) = saved.meta_graphs[0].collection_def["saved_model_assets"].any_list.value
    renamed = meta_graph_pb2.AssetFileDef()
    assert packed.Unpack(renamed)
    renamed.filename = asset.format(tmp_path)
    packed.Pack(renamed)
    (export / "saved_model.pb").write_bytes(saved.SerializeToString())
    said = refused(export, tmp_path / "out", capsys)
    assert f"/assets/{asset}" in said or f"is filled from {tmp_path}/secret" in said


@pytest.fixture
def model(naming, tmp_path):
    """(prefix, what lets its vocabulary in, a data set) of a model that is converted to OUT."""
    words, data = tmp_path / "words.txt", tmp_path / "rows.parquet"
    words.write_text(WORDS)
    rows = pd.DataFrame({"word": ["red", "far"] * 20, "clicked": [0.0, 1.0, 1.0, 0.0] * 10})
    rows.to_parquet(data)
    prefix, let_in = str(naming(words)), ["--asset", str(words)]
    assert cli.main(["convert", prefix, str(tmp_path / "out"), "--model", *let_in]) == 0
    return prefix, let_in, str(data)


def check(command, let_in, capsys):
    """That a command takes the file if it is let in alone."""
    capsys.readouterr()
    assert cli.main(command) == 3
    assert f"type {' '.join(let_in)} " in capsys.readouterr().err
    assert cli.main([*command, *let_in]) in (0, 2)  # inconclusive: a migration of few rows


@pytest.mark.parametrize("linked", ["assets", "assets/words.txt"])
def test_a_wheel_does_not_pack_what_a_link_leads_to(model, tmp_path, linked):
    path = tmp_path / "out" / linked
    path.rename(tmp_path / "private")
    path.symlink_to(tmp_path / "private")
    with pytest.raises(BadInput, match=r"words.txt is a link to .*/private.*put the file itself"):
        migrate.write_wheel(str(tmp_path / "out"), str(tmp_path / "dist"), "words_model")


def test_training_and_the_way_back_take_the_option(model, tmp_path, capsys):
    prefix, let_in, data = model
    on, back = tmp_path / "on", str(tmp_path / "back.ckpt-1")
    check(["train", prefix, "--data", data, "--batch-size", "40", "--out", str(on)], let_in, capsys)
    step = str(on / "checkpoints" / "step-00000001")
    check(["convert", "--to-tensorflow", step, back, "--original", prefix], let_in, capsys)


def test_a_frozen_graph_and_its_verification_take_the_option(model, tmp_path, capsys):
    _, let_in, _ = model
    folder = tmp_path / "frozen"
    with tf.Graph().as_default() as graph:
        build(let_in[1], tf.ones([4, 1]))
        tf.io.write_graph(graph.as_graph_def(), str(folder), "frozen.pb", False)
    out = str(tmp_path / "frozen_out")
    check(["convert", str(folder / "frozen.pb"), out, "--model"], let_in, capsys)
    check(["verify", str(folder / "frozen.pb"), out], let_in, capsys)


def test_inspect_takes_the_option_and_hands_it_to_the_call_of_convert(model, capsys):
    prefix, let_in, _ = model
    inspect = ["inspect", prefix, "--graph"]
    assert cli.main(inspect) == 0
    assert f"type {' '.join(let_in)} " in capsys.readouterr().out
    assert cli.main([*inspect, *let_in]) == 0
    assert f"converted --model {' '.join(let_in)}\n" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["forward", "steps", "migrate"])
@pytest.mark.long
def test_comparisons_with_tensorflow_take_the_option(model, tmp_path, capsys, what):
    prefix, let_in, data = model
    verify = ["verify", prefix, str(tmp_path / "out")]
    command = {
        "forward": [*verify, "--forward", data, "--no-onnx"],
        "steps": [*verify, "--steps", "1", "--data", data],
        "migrate": ["migrate", prefix, "--data", data, "--label", "clicked", "--margin", "0.9"],
    }[what]
    command += ["--out", str(tmp_path / "migrated")] if what == "migrate" else []
    check(command, let_in, capsys)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("{}", "memory://elsewhere/words.txt"),
        ("memory://bucket", "words.txt::memory://elsewhere/words.txt"),
        ("memory://bucket", "words.txt::file"),
    ],
)
def test_no_name_in_a_file_leads_to_another_server(tmp_path, folder, name):
    assert within(folder.format(tmp_path), name) is None


def test_columns_are_parted_by_any_byte(tmp_path):
    (tmp_path / "words.txt").write_bytes(b"red\xff7\nblue\xff5\n")
    columns = (tf.string, 0, tf.int64, 1)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        word = tf.placeholder(tf.string, [None], name="word")
        initializer = tf.lookup.TextFileInitializer(
            str(tmp_path / "words.txt"), *columns, delimiter=b"\xff"
        )
        tf.identity(tf.lookup.StaticHashTable(initializer, 3).lookup(word), name="ids")
        session.run(tf.tables_initializer())
        expected = session.run("ids:0", {word: ["blue", "far", "red"]})
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    module = migrate.load_model(str(tmp_path / "graph.pb"), output="ids")
    found = module({"word": ["blue", "far", "red"]})
    np.testing.assert_array_equal(found, expected)
