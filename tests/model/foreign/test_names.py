"""Hostile text as every name of a graph, a checkpoint and a vocabulary, and as file names."""

import os
import shutil

import numpy as np
import pytest
import torch

from migrate import runtime
from migrate.model.load import load_model
from migrate.runtime.source import read_source
from semisync import cli
from semisync.common import exit_codes
from semisync.common.errors import SemisyncError
from tests.model.foreign.texts import MARKER, TEXTS, as_bytes, titled

tf = pytest.importorskip("tensorflow").compat.v1

NAMES = [text for text in TEXTS if isinstance(text, str)]


def table(initializer):
    return tf.lookup.StaticHashTable(initializer, -1)


def entry(text):
    """The text as a line of a vocabulary."""
    return b" ".join(as_bytes(text).splitlines())


def write(folder, text):
    """A model that has the text as an entry of vocabularies, in a string and in its checkpoint;
    its prefix, what it is fed, and its score."""
    with open(f"{folder}/vocabulary.txt", "wb") as file:
        file.write(b"\n".join([b"a", entry(text), b"b"]))
    with tf.Graph().as_default(), tf.Session() as session:
        word = tf.placeholder(tf.string, [None], "word")
        amount = tf.placeholder(tf.float32, [None, 2], "amount")
        keys = tf.constant([b"a", as_bytes(text)])
        listed = table(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([3, 4], tf.int64)))
        read = table(
            tf.lookup.TextFileInitializer(
                f"{folder}/vocabulary.txt",
                *(tf.string, tf.lookup.TextFileIndex.WHOLE_LINE),
                *(tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
            )
        )
        joined = tf.strings.join([word, tf.constant(as_bytes(text))], name="joined")
        hashed = tf.strings.to_hash_bucket_fast(joined, 1000)
        double = tf.function(lambda x: tf.sigmoid(x) * 2.0, autograph=False)
        weights = tf.get_variable("w", [2, 1])
        ids = tf.cast(listed.lookup(word) + read.lookup(word) * 10 + hashed, tf.float32)
        score = tf.identity(double(amount @ weights)[:, 0] + ids / 100, "score")
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        words = np.array([b"a", as_bytes(text), entry(text), b"b", b"other"], object)
        feeds = {word: words, amount: np.arange(10, dtype="f").reshape(5, 2) / 9}
        name = text if isinstance(text, str) else "w"
        prefix = tf.train.Saver({name: weights}).save(session, f"{folder}/model")
        return prefix, list(feeds.values()), session.run(score, feeds)


def renamed(prefix, text):
    """A MetaGraph with the text in the name of every node and function; what they are called."""
    meta = tf.MetaGraphDef()
    with open(prefix + ".meta", "rb") as file:
        meta.ParseFromString(file.read())
    meta.collection_def.clear()
    graph = meta.graph_def
    names = {node.name: f"{text}{number}" for number, node in enumerate(graph.node)}
    called = {one.signature.name: f"{text}f" for one in graph.library.function}

    def of(edge):
        name, colon, output = edge.partition(":")
        return "^" + names[name[1:]] if name[0] == "^" else names[name] + colon + output

    for node in graph.node:
        node.name = names[node.name]
        node.input[:] = [of(edge) for edge in node.input]
        for attribute in node.attr.values():
            if attribute.func.name:
                attribute.func.name = called[attribute.func.name]
    for one in graph.library.function:
        one.signature.name = called[one.signature.name]
    with open(prefix + ".meta", "wb") as file:
        file.write(meta.SerializeToString())
    return names


def scored(module, inputs, given):
    values = [runtime.Strings.of(given[0]), torch.tensor(given[1])]
    by_type = {"string": values[0], "float32": values[1]}
    return module({name: by_type[one.dtype] for name, one in inputs.items()}).detach().numpy()


@pytest.mark.few(3)
@pytest.mark.parametrize("text", TEXTS, ids=titled)
def test_a_name_or_an_entry_is_data(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job").mkdir()
    prefix, given, expected = write(str(tmp_path / "job"), text)
    names = renamed(prefix, text if isinstance(text, str) else "n")
    try:
        module = load_model(prefix, output=names["score"] + ":0")
    except SemisyncError:
        module = None
    if module is not None:
        found = scored(module, module.tensorflow_inputs, given)
        np.testing.assert_allclose(found, expected, 1e-6, 1e-6)
    run = ["convert", prefix, "out", "--model", "--output", names["score"] + ":0"]
    done = cli.main(run)
    # Of a NUL in a name the manifest has no room.
    refused = module is None or (isinstance(text, str) and "\0" in text)
    assert done == (exit_codes.BAD_INPUT if refused else exit_codes.DONE), capsys.readouterr()
    if not refused:
        source = read_source(str(tmp_path / "out"))
        found = scored(source.load(), source.INPUTS, given)
        np.testing.assert_allclose(found, expected, 1e-6, 1e-6)
    assert not list(tmp_path.rglob(MARKER))


@pytest.mark.parametrize("text", ["n"])
def test_names_as_they_are_convert(text, tmp_path):
    """The test above, of a name that nothing refuses."""
    prefix, given, expected = write(str(tmp_path), text)
    module = load_model(prefix, output=renamed(prefix, text)["score"] + ":0")
    np.testing.assert_allclose(scored(module, module.tensorflow_inputs, given), expected, 1e-6)


@pytest.mark.few(5)
@pytest.mark.parametrize("text", NAMES, ids=titled)
def test_the_name_of_a_file_is_data(text, tmp_path, monkeypatch):
    name = text.replace("/", "_").replace("\0", "_")[:100] + ".meta"
    monkeypatch.chdir(tmp_path)
    prefix, given, expected = write(str(tmp_path), "n")
    shutil.move(prefix + ".meta", name)
    module = load_model(prefix, name, output="score")
    np.testing.assert_allclose(scored(module, module.tensorflow_inputs, given), expected, 1e-6)
    assert repr(name)[1:-1].replace('"', '\\"') in module.source.partition("import os")[0]
    assert cli.main(["convert", prefix, "out", "--meta", name, "--model", "--output", "score"]) == 0
    source = read_source(str(tmp_path / "out"))
    np.testing.assert_allclose(scored(source.load(), source.INPUTS, given), expected, 1e-6)
    assert not os.path.exists(MARKER)
