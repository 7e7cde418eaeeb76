"""Writes SavedModels of TensorFlow 2 into a folder, with what they are given and what they score.

keras/, keras_export/   a Keras model by tf.saved_model.save and by Model.export; keras.npz
tables/                 a tf.Module with lookup tables, one filled from an asset; tables.npz
"""

import os
import sys

os.environ.pop("TF_USE_LEGACY_KERAS", None)  # which other scripts of the tests set

import numpy as np
import tensorflow as tf

keras = tf.keras


def main(folder):
    random = np.random.RandomState(0)
    write_keras(folder, random)
    write_tables(folder, random)


def write_keras(folder, random):
    a = keras.Input((3,), name="a")
    b = keras.Input((1,), name="b", dtype="int64")
    rows = keras.layers.Flatten()(keras.layers.Embedding(10, 4, name="rows")(b))
    net = keras.layers.Concatenate()([a, rows])
    net = keras.layers.Dense(8, activation="relu", name="deep")(net)
    net = keras.layers.Dropout(0.3)(keras.layers.BatchNormalization(name="norm")(net))
    model = keras.Model([a, b], keras.layers.Dense(1, name="out")(net))
    model.compile("sgd", "mse")
    given = random.randn(64, 3).astype("f"), random.randint(0, 10, (64, 1))
    model.fit(given, random.randn(64, 1), verbose=0)
    tf.saved_model.save(model, os.path.join(folder, "keras"))
    model.export(os.path.join(folder, "keras_export"), verbose=False)
    trainable = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    np.savez(
        os.path.join(folder, "keras.npz"),
        a=given[0],
        b=given[1],
        scores=model.predict(given, verbose=0),
        trainable=trainable,
    )


class Tables(tf.Module):
    """A score from two lookup tables."""

    def __init__(self, vocabulary):
        super().__init__()
        self.weight = tf.Variable(np.ones((3, 1), "f"), name="weight")
        keys, values = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
        self.listed = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, values), -1
        )
        whole, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        initializer = tf.lookup.TextFileInitializer(vocabulary, tf.string, whole, tf.int64, number)
        self.of_file = tf.lookup.StaticVocabularyTable(initializer, 2)

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.string)])
    def score(self, x, k):
        found = self.listed.lookup(k) + 10 * self.of_file.lookup(k)
        return {"score": x @ self.weight + tf.cast(found, tf.float32)[:, None]}


def write_tables(folder, random):
    vocabulary = os.path.join(folder, "words.txt")
    with open(vocabulary, "w") as file:
        file.write("x\ny\nb\n")
    module = Tables(vocabulary)
    path = os.path.join(folder, "tables")
    tf.saved_model.save(module, path, signatures={"serving_default": module.score})
    x, k = random.randint(-3, 3, (5, 3)).astype("f"), np.array(["a", "b", "y", "q", ""])
    scores = module.score(tf.constant(x), tf.constant(k))["score"].numpy()
    np.savez(os.path.join(folder, "tables.npz"), x=x, k=k, scores=scores)
    os.remove(vocabulary)  # the SavedModel has a copy


if __name__ == "__main__":
    main(sys.argv[1])
