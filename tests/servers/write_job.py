"""A click model whose tables are on a made-up server, Acme's, and what TensorFlow computes.

    python write_job.py FOLDER

FOLDER/model.ckpt has the dense variables, with a MetaGraph of AcmePull and AcmePush, which no
TensorFlow has, and FOLDER/model.ckpt.acme the dump of the tables. recorded.npz has what the same
model over ordinary variables computes, whose rows are those of the ids: scores, the losses of the
steps that follow the checkpoint, and rows and accumulators after them.
"""

import os
import struct
import sys

import numpy as np
import tensorflow as tf

tf = tf.compat.v1
tf.disable_v2_behavior()

ROWS, STEPS, SIZE, RATE = 192, 6, 32, 0.1
IDS = {
    "user": np.array([-4, -3, 0, 1, 2, 2**40, 2**62 - 1, 77, 99]),  # 77 and 99 are new
    "item": np.array([5, 6, 7, -8, 9]),  # 9 is new
}
NEW = {"user": 2, "item": 1}


def rows(seed, news):
    """Numbers of ids; ids repeat within a row and between rows."""
    random = np.random.RandomState(seed)
    known = {name: len(ids) - (0 if news else NEW[name]) for name, ids in IDS.items()}
    user = random.randint(0, known["user"], ROWS)
    items = random.randint(0, known["item"], (ROWS, 2))
    return {"user": user, "items": items, "clicked": (random.rand(ROWS) < 0.4).astype("f")}


def table(name, dim):
    random = np.random.RandomState(len(name))
    first = random.normal(0, 0.3, (len(IDS[name]), dim)).astype("f")
    first[len(first) - NEW[name] :] = 0
    return tf.get_variable(name, initializer=first, use_resource=True)


def dense_layer(x, dim, units, name):
    with tf.variable_scope(name):
        return x @ tf.get_variable("kernel", [dim, units]) + tf.get_variable("bias", [units])


def build():
    user = tf.placeholder(tf.int64, [None], name="user")
    items = tf.placeholder(tf.int64, [None, 2], name="items")
    clicked = tf.placeholder(tf.float32, [None], name="clicked")
    tables = {"user": table("user", 4), "item": table("item", 3)}
    flat = tf.reshape(items, [-1])
    pulled = [
        tf.gather(tables["user"], user, name="pull_user"),
        tf.gather(tables["item"], flat, name="pull_item"),
    ]
    bags = tf.reduce_sum(tf.reshape(pulled[1], [-1, 2, 3]), 1)
    hidden = tf.nn.relu(dense_layer(tf.concat([pulled[0], bags], 1), 7, 5, "hidden"))
    logits = tf.identity(dense_layer(hidden, 5, 1, "out")[:, 0], name="logits")
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits))
    loss = tf.identity(loss, name="loss")
    dense = [v for v in tf.trainable_variables() if v not in tables.values()]
    gradients = tf.gradients(loss, [*dense, *pulled])
    step = tf.train.get_or_create_global_step()
    descent = tf.train.GradientDescentOptimizer(RATE)
    adagrad = tf.train.AdagradOptimizer(RATE, initial_accumulator_value=0.25)
    by_rows = [
        (tf.IndexedSlices(gradients[-2], user, [len(IDS["user"]), 4]), tables["user"]),
        (tf.IndexedSlices(gradients[-1], flat, [len(IDS["item"]), 3]), tables["item"]),
    ]
    with tf.control_dependencies(
        [
            adagrad.apply_gradients(by_rows[:1], name="push_user"),
            descent.apply_gradients(by_rows[1:], name="push_item"),
        ]
    ):
        train = descent.apply_gradients(zip(gradients, dense), step, name="train")
    tf.add_to_collection("train_op", train)
    pushed = {"user": ("user:0", gradients[-2].name), "item": (flat.name, gradients[-1].name)}
    return tables, adagrad.get_slot(tables["user"], "accumulator"), [*dense, step], pushed


def with_servers_ops(meta_graph, pushed):
    """The graph with AcmePull and AcmePush in the place of the variables and their training."""
    graph = meta_graph.graph_def
    nodes = {node.name: node for node in graph.node}
    for name, (ids, gradient) in pushed.items():
        pull = nodes["pull_" + name]
        assert pull.op == "ResourceGather", pull.op
        del pull.input[0]
        pull.op = "AcmePull"
        pull.attr.clear()
        push = nodes["push_" + name]
        assert push.op == "NoOp", push.op
        del push.input[:]
        push.op = "AcmePush"
        push.input.extend([ids, gradient])
        push.attr["rate"].f = RATE
        push.attr["rule"].s = b"adagrad" if name == "user" else b"sgd"
        for node in (pull, push):
            node.attr["table"].s = name.encode()
    for node in graph.node:
        node.attr.pop("_class", None)
    kept = tf.graph_util.extract_sub_graph(
        graph, ["train", "loss", "logits", "save/control_dependency", "save/restore_all"]
    )
    graph.CopyFrom(kept)
    return meta_graph


def write_shard(path, ids, rows, accumulators):
    dim = rows.shape[1]
    entries = np.zeros(len(ids), [("id", "<i8"), ("row", "<f4", dim), ("state", "<f4", dim)])
    entries["id"], entries["row"], entries["state"] = ids, rows, accumulators
    with open(path, "wb") as file:
        file.write(b"ACME" + struct.pack("<IQ", dim, len(ids)) + entries.tobytes())


def feed(rows, start=0, size=ROWS):
    return {name + ":0": values[start : start + size] for name, values in rows.items()}


def by_id(rows):
    """With ids in the place of their numbers."""
    return {**rows, "user": IDS["user"][rows["user"]], "items": IDS["item"][rows["items"]]}


def main(folder):
    tf.set_random_seed(1)
    tables, accumulator, dense, pushed = build()
    before, after = rows(1, news=False), rows(2, news=True)
    saver = tf.train.Saver(dense)
    recorded = {"before/" + name: values for name, values in by_id(before).items()}
    recorded.update(("after/" + name, values) for name, values in by_id(after).items())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for start in range(0, ROWS, SIZE):
            session.run("train", feed(before, start, SIZE))
        prefix = saver.save(session, os.path.join(folder, "model.ckpt"), write_meta_graph=False)
        whole = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
        with open(prefix + ".meta", "wb") as file:
            file.write(with_servers_ops(whole, pushed).SerializeToString())
        os.mkdir(prefix + ".acme")
        values = session.run({**tables, "accumulator": accumulator})
        for name, ids in IDS.items():
            known, state = len(ids) - NEW[name], values["accumulator"]
            for number in range(2):
                own = np.arange(known)[number::2]
                path = os.path.join(prefix + ".acme", "{}.{}of2".format(name, number))
                slots = state[own] if name == "user" else np.zeros((len(own), 3), "f")
                write_shard(path, ids[own], values[name][own], slots)
        recorded["logits"] = session.run("logits:0", feed(before))
        losses = []
        for start in range(0, ROWS, SIZE):
            given = feed(after, start, SIZE)
            losses.append(session.run(["loss:0", "train"], given)[0])
        recorded["losses"] = np.array(losses)
        values = session.run({**tables, "accumulator": accumulator, "kernel": dense[0]})
        recorded.update(values)
        recorded.update(("ids/" + name, ids) for name, ids in IDS.items())
    np.savez(os.path.join(folder, "recorded.npz"), **recorded)


if __name__ == "__main__":
    main(sys.argv[1])
