"""What the examples of the public docstrings find in their folder, and the names that they may use.

model.ckpt-40000    a model of cities and items, trained by Adagrad, with its MetaGraph
model.semisync.meta that MetaGraph, rewritten by `semisync rewrite`
converted           its conversion
users.model         a hash table of three ids, as HugeCTR keeps it
by_id               its conversion with --ids rows
clicks.parquet, .txt  eight clicks of two users
audit.jsonl, worker-0.csv  for the examples of semisync
"""

import contextlib
import pathlib

import numpy as np

_TABLES = {"cities": 50, "products": 100}


class Shelf:
    """Fills the working directory with what a package's examples need, when they need it."""

    def __init__(self):
        self._filled = set()

    @contextlib.contextmanager
    def around(self, package):
        """Yields the names of an example, of which `tf` has a graph of its own."""
        names = self._names(package)
        if package in ("semisync", "graph_rewrite"):
            with names["tf"].Graph().as_default():
                yield names
        else:
            yield names

    def _names(self, package):
        self._once(_trained_model) if package != "parity" else None
        if package == "parity":
            import parity

            return {"np": np, "parity": parity, **_scores()}
        if package == "migrate":
            import torch

            import migrate

            self._once(_conversions)
            return {"migrate": migrate, "torch": torch}
        import graph_rewrite
        import semisync
        from semisync import audit
        from semisync.cluster import status

        self._once(_job)
        tf = _tensorflow()
        packages = {"semisync": semisync, "graph_rewrite": graph_rewrite}
        return {"np": np, "tf": tf, "audit": audit, "status": status, **packages}

    def _once(self, fill):
        if fill not in self._filled:
            self._filled.add(fill)
            fill()


def _tensorflow():
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    return tf


def _trained_model():
    tf = _tensorflow()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        city = tf.placeholder(tf.string, [None], name="city")
        item = tf.placeholder(tf.int64, [None], name="item")
        clicked = tf.placeholder(tf.float32, [None, 1], name="clicked")
        cities, products = (tf.get_variable(name, [rows, 4]) for name, rows in _TABLES.items())
        kernel = tf.get_variable("kernel", [8, 1])
        hashed = tf.string_to_hash_bucket_fast(city, _TABLES["cities"])
        found = [tf.nn.embedding_lookup(cities, hashed), tf.nn.embedding_lookup(products, item)]
        logits = tf.matmul(tf.concat(found, 1), kernel, name="logits")
        loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits)
        step = tf.train.get_or_create_global_step()
        tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_mean(loss), global_step=step)
        session.run(tf.global_variables_initializer())
        session.run(step.assign(40000))
        tf.train.Saver().save(session, "model.ckpt", global_step=step)


def _job():
    """For `semisync`: a rewritten MetaGraph, an audit log, a trace, a folder to publish."""
    tf = _tensorflow()
    import graph_rewrite
    from semisync.audit import AuditLog

    with tf.Graph().as_default():
        tf.train.import_meta_graph("model.ckpt-40000.meta")
        rewritten, _ = graph_rewrite.semi_synchronize(tf.train.export_meta_graph(), 2)
    pathlib.Path("model.semisync.meta").write_bytes(rewritten.SerializeToString())
    log = AuditLog("audit.jsonl")
    log.write([{"event": "begin", "step": 0, "first": 0}])
    log.write([{"event": "issued", "tickets": list(range(8))}])
    for step in range(4):
        tickets = [2 * step, 2 * step + 1]
        batches = [{"ticket": ticket, "staleness": 0, "weight": 1.0} for ticket in tickets]
        log.write([{"event": "step", "step": step, "batches": batches}])
    log.write([{"event": "end"}])
    pathlib.Path("worker-0.csv").write_text("pause,run\n0.01,0.1\n0.02,0.1\n")


def _conversions():
    """For `migrate`: a hash table, both conversions, click logs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import migrate

    with migrate.open_checkpoint("model.ckpt-40000") as checkpoint:
        migrate.convert(migrate.plan(checkpoint), "converted")
    users = pathlib.Path("users.model")
    users.mkdir()
    np.array([2**40, -7, 12], np.int64).tofile(str(users / "key"))
    np.array([[1, 2], [3, 4], [5, 6]], np.float32).tofile(str(users / "emb_vector"))
    with migrate.open_checkpoint("users.model") as checkpoint:
        migrate.convert(migrate.plan(checkpoint, ids="rows"), "by_id")
    clicks = {
        "user": [1, 2] * 4,
        "city": ["Bern", "Oslo"] * 4,
        "item": list(range(1, 9)),
        "time": list(range(1, 9)),
        "clicked": [1, 0] * 4,
    }
    pq.write_table(pa.table(clicks), "clicks.parquet")
    pathlib.Path("clicks.txt").write_text("1;3\n2;4\n")


def _scores():
    """For `parity`: 4,000 rows of four days and two countries, and two models' scores of them."""
    draw = np.random.RandomState(0)
    logits = draw.randn(4000)
    rows = np.arange(4000)
    return {
        "labels": (draw.rand(4000) < 1 / (1 + np.exp(-logits))).astype(int),
        "baseline": 1 / (1 + np.exp(-logits)),
        "candidate": 1 / (1 + np.exp(-logits - 1e-3 * draw.randn(4000))),
        "days": np.array(["2024-01-0{}".format(1 + row) for row in rows % 4]),
        "countries": np.where(rows % 8 < 4, "ch", "no"),
    }
