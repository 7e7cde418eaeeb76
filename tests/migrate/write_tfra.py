"""Writes tests/migrate/data/tfra with the real TensorFlow Recommenders-Addons; run by hand.

    python3.11 -m venv tfra
    tfra/bin/pip install tensorflow-cpu==2.16.2 tf-keras==2.16.0 \\
        tensorflow-recommenders-addons==0.8.1
    tfra/bin/python tests/migrate/write_tfra.py tests/migrate/data/tfra

A table of two partitions, trained with Adam, as tensors of a checkpoint (in_bundle) and by
FileSystemSaver (TFRADynamicEmbedding). tables.npz is what the table itself exports.
"""

import os
import pathlib
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
from tensorflow_recommenders_addons import dynamic_embedding as de
from tensorflow_recommenders_addons.dynamic_embedding.python.ops import tf_save_restore_patch

tf1 = tf.compat.v1
IDS = np.array([5, -7, 1 << 40, 0, 6, 8, -(1 << 50)])


def train(out, name, kv_saver, saver):
    with tf.Graph().as_default(), tf1.Session() as session:
        ids = tf1.placeholder(tf.int64, [None])
        table = de.get_variable(
            "deep/user",
            dim=4,
            devices=["/cpu:0"] * 2,
            initializer=0.5,
            kv_creator=de.CuckooHashTableCreator(saver=kv_saver),
        )
        vectors, trained = de.embedding_lookup(table, ids, return_trainable=True, name="look")
        step = tf1.train.get_or_create_global_step()
        optimizer = de.DynamicEmbeddingOptimizer(tf1.train.AdamOptimizer(0.1))
        loss = tf.reduce_sum(vectors * vectors)
        train_op = optimizer.minimize(loss, var_list=[trained], global_step=step)
        session.run(tf1.global_variables_initializer())
        for batch in (IDS, IDS[:3]):
            session.run(train_op, {ids: batch})
        keys, values = session.run(table.export())
        order = np.argsort(keys)
        np.savez(out / "tables.npz", keys=keys[order], values=values[order])
        saver().save(session, str(out / name), write_meta_graph=False, write_state=False)


def main(out):
    train(out, "in_bundle", None, tf1.train.Saver)
    beside = tf_save_restore_patch._DynamicEmbeddingSaver
    train(out, "beside", de.FileSystemSaver(), beside)
    for file in out.glob("beside.*"):
        file.unlink()  # only says how many partitions there are


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
