"""Writes the checkpoints of these tests with a real TensorFlow, 1.15 or 2.x; run as a script.

    python write_checkpoints.py OUT

Beside each checkpoint NAME stands NAME.npz: what TensorFlow itself says that it holds. For a table
that is the look-up of the ids 0..rows-1, with the partition strategy that the model uses.
"""

import os
import sys

import numpy as np
import tensorflow as tf

if tf.__version__ >= "2":
    tf = tf.compat.v1
    tf.disable_v2_behavior()

from tensorflow.python.ops import io_ops, lookup_ops

STEPS = 3  # before the checkpoint is saved, and again after it
BATCH, BAG = 8, 3
TABLES = {"user": (31, 3, "mod"), "item": (20, 3, "div"), "plain/city": (10, 1, None)}
DIM = 8
V1_REFUSES = {"bfloat16"}  # TensorFlow's V1 writer lacks it


def session():
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))


def batches(seed, count):
    """Ids of every table, repeated within a bag and across bags: {table: [count, BATCH, BAG]}."""
    random = np.random.RandomState(seed)
    return {t: random.randint(0, rows, (count, BATCH, BAG)) for t, (rows, _, _) in TABLES.items()}


def lookup(params, ids, strategy):
    if strategy is None:
        return tf.nn.embedding_lookup(params, ids)
    return tf.nn.embedding_lookup(params, ids, partition_strategy=strategy)


def recommender(out, name, optimizer, slots, resource):
    """Three tables, a first-order weight dealt by mod, a dense layer; several data files."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        ids = {t: tf.placeholder(tf.int64, [None, BAG], t.replace("/", "_")) for t in TABLES}
        variables, losses = {}, []
        with tf.variable_scope("", use_resource=resource):
            for index, (table, (rows, parts, strategy)) in enumerate(TABLES.items()):
                with tf.device("/cpu:{}".format(index % 2)):
                    cut = tf.fixed_size_partitioner(parts) if parts > 1 else None
                    variables[table] = tf.get_variable(table, [rows, DIM], partitioner=cut)
                pooled = tf.reduce_sum(lookup(variables[table], ids[table], strategy), axis=1)
                losses.append(0.5 * tf.reduce_sum(tf.square(pooled)))
            with tf.device("/cpu:1"):
                first = tf.get_variable("first", [31], partitioner=tf.fixed_size_partitioner(3))
                kernel = tf.get_variable("dense/kernel", [DIM, 2])
            losses.append(tf.reduce_sum(tf.square(lookup(first, ids["user"], "mod"))))
            losses.append(tf.reduce_sum(tf.square(tf.matmul(pooled, kernel))) * 0.0)
            variables["first"] = first
            step = tf.train.get_or_create_global_step()
        train = optimizer.minimize(tf.add_n(losses), global_step=step)
        want = {}
        for table, variable in variables.items():
            rows, _, strategy = TABLES.get(table, (31, 3, "mod"))
            parts = list(variable) if strategy else [variable]
            every = np.arange(rows, dtype=np.int64)
            want[table] = lookup(parts if strategy else variable, every, strategy)
            for slot in slots:
                of_parts = [optimizer.get_slot(part, slot) for part in parts]
                found = lookup(of_parts if strategy else of_parts[0], every, strategy)
                want["{}:{}".format(table, slot)] = found
        want["dense/kernel"] = kernel if not resource else kernel.read_value()
        saver = tf.train.Saver(sharded=True)
        with session() as sess:
            sess.run(tf.global_variables_initializer())
            feed = batches(1, STEPS)
            for turn in range(STEPS):
                sess.run(train, {ids[t]: feed[t][turn] for t in TABLES})
            saver.save(sess, os.path.join(out, name))
            now = sess.run(want)
            feed = batches(2, STEPS)
            for turn in range(STEPS):
                sess.run(train, {ids[t]: feed[t][turn] for t in TABLES})
            later = {"later " + key: value for key, value in sess.run(want).items()}
        np.savez(os.path.join(out, name + ".npz"), **dict(now, **later))


def other_optimizers():
    """Optimizers that torch lacks, with their slots."""
    train = tf.train
    found = {
        "momentum": (train.MomentumOptimizer(0.01, 0.9), ["momentum"]),
        "nesterov": (train.MomentumOptimizer(0.01, 0.9, use_nesterov=True), ["momentum"]),
        "rmsprop": (train.RMSPropOptimizer(0.01, 0.8, momentum=0.5), ["rms", "momentum"]),
        "centered": (
            train.RMSPropOptimizer(0.01, 0.8, momentum=0.5, epsilon=1e-3, centered=True),
            ["rms", "mg", "momentum"],
        ),
        "ftrl": (
            train.FtrlOptimizer(
                0.1,
                l1_regularization_strength=0.01,
                l2_regularization_strength=0.1,
                l2_shrinkage_regularization_strength=0.05,
            ),
            ["accum", "linear"],
        ),
    }
    if "--lazy-adam" in sys.argv:  # TensorFlow 1 alone, and its import takes seconds
        from tensorflow.contrib.opt.python.training.lazy_adam_optimizer import LazyAdamOptimizer

        found["lazy_adam"] = (LazyAdamOptimizer(0.1), ["m", "v"])
    return found


def by_hand(out):
    """Two separate variables that one look-up treats as the partitions of a table."""
    with tf.Graph().as_default():
        parts = [tf.get_variable("shard_{}".format(k), [5, 4]) for k in range(2)]
        other = tf.get_variable("other", [6, 4])
        ids = tf.placeholder(tf.int64, [None])
        tf.nn.embedding_lookup(parts, ids, partition_strategy="mod")
        tf.nn.embedding_lookup(other, ids)
        save(out, "by_hand")


def conditional(out, name, functions):
    """A look-up inside of tf.cond, as ops of the graph or as a function of its library."""
    with tf.Graph().as_default():
        if functions:
            tf.enable_control_flow_v2()
        table = tf.get_variable("table", [6, 4], use_resource=True)
        ids = tf.placeholder(tf.int64, [None])
        tf.cond(
            tf.size(ids) > 2,
            lambda: tf.reduce_sum(tf.nn.embedding_lookup(table, ids)),
            lambda: tf.constant(0.0),
        )
        save(out, name)
        tf.disable_control_flow_v2()


def poolings(out):
    """A table for each combiner, with and without weights, whole and in partitions; and others."""
    bags, weights_of = [[3, 9, 9], [0], [7, 2]], [[0.5, 2.0, -1.0], [3.0], [1.5, 0.25]]
    with tf.Graph().as_default():
        tf.set_random_seed(2)
        where = [[row, column] for row, bag in enumerate(bags) for column in range(len(bag))]
        ids = tf.sparse_placeholder(tf.int64, [None, None])
        weights = tf.sparse_placeholder(tf.float32, [None, None])
        found = {}
        for combiner in ("sum", "mean", "sqrtn"):
            for given in (None, weights):
                for parts in (1, 3):
                    name = "{}_{}_{}".format(combiner, "weighted" if given else "plain", parts)
                    with tf.variable_scope("", use_resource=parts > 1):
                        cut = tf.fixed_size_partitioner(parts) if parts > 1 else None
                        table = tf.get_variable(name, [12, 4], partitioner=cut)
                    pooled = tf.nn.embedding_lookup_sparse(table, ids, given, combiner=combiner)
                    found[name] = pooled
        dense = tf.placeholder(tf.int64, [None, 3])
        tables = {name: tf.get_variable(name, [12, 4]) for name in ("middle", "last", "one", "two")}
        found["middle"] = tf.reduce_mean(tf.nn.embedding_lookup(tables["middle"], dense), axis=-2)
        last = tf.reduce_sum(tf.nn.embedding_lookup(tables["last"], dense[:, 0]), axis=1)
        one = tf.concat([tf.nn.embedding_lookup(tables["one"], dense[:, 1]), found["middle"]], 1)
        two = [tf.reduce_sum(tf.nn.embedding_lookup(tables["two"], dense), axis=1)]
        two.append(tf.nn.embedding_lookup_sparse(tables["two"], ids, None, combiner="mean"))
        losses = [tf.reduce_sum(tf.square(x)) for x in list(found.values()) + two + [last, one]]
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses))
        with session() as sess:
            sess.run(tf.global_variables_initializer())
            feed = {
                ids: tf.SparseTensorValue(where, sum(bags, []), [3, 3]),
                weights: tf.SparseTensorValue(where, sum(weights_of, []), [3, 3]),
                dense: [[3, 9, 9], [0, 1, 2]],
            }
            np.savez(os.path.join(out, "poolings.npz"), **sess.run(found, feed))
            tf.train.Saver().save(sess, os.path.join(out, "poolings"))


def save(out, name):
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, os.path.join(out, name))


def slices(out):
    """Every data type, names beyond ASCII, and slices along rows, columns and both."""
    with tf.Graph().as_default():
        random = np.random.RandomState(3)
        values = {
            "float32": random.randn(5, 7).astype(np.float32),
            "float64": random.randn(4),
            "half": random.randn(3, 3).astype(np.float16),
            "int8": np.arange(-3, 4, dtype=np.int8),
            "uint8": np.arange(7, dtype=np.uint8),
            "int16": np.arange(-3, 4, dtype=np.int16),
            "uint16": np.arange(7, dtype=np.uint16),
            "int32": np.arange(-3, 4, dtype=np.int32),
            "int64": np.array([-(2**62), 5], np.int64),
            "bool": np.array([True, False, True]),
            "complex64": np.array([1 + 2j, -3j], np.complex64),
            "strings": np.array([[b"", b"a\x00b"], [b"x" * 300, "\u00fcber".encode()]]),
            "scalar": np.float32(2.5),
            "empty": np.zeros((0, 4), np.float32),
            "\u043f\u0440\u0438\u0432\u0435\u0442/\u8868": np.arange(6, dtype=np.float32),
        }
        named = {
            name: tf.Variable(value, name="v{}".format(index))
            for index, (name, value) in enumerate(values.items())
        }
        named["bfloat16"] = tf.Variable(tf.cast(values["float32"], tf.bfloat16), name="bf")
        grid = np.arange(170 * 70, dtype=np.float32).reshape(170, 70)
        cuts = {
            "rows": ([0, 64, 100, 170], [0, 70]),
            "columns": ([0, 170], [0, 1, 65, 70]),
            "both": ([0, 7, 170], [0, 64, 70]),
        }
        parts = []
        for name, (row_cuts, column_cuts) in cuts.items():
            for a, b in zip(row_cuts, row_cuts[1:]):
                for c, d in zip(column_cuts, column_cuts[1:]):
                    with tf.device("/cpu:{}".format(len(parts) % 2)):
                        part = tf.Variable(grid[a:b, c:d], name="{}_{}_{}".format(name, a, c))
                    part._set_save_slice_info(
                        tf.Variable.SaveSliceInfo(name, [170, 70], [a, c], [b - a, d - c])
                    )
                    parts.append(part)
        with session() as sess:
            sess.run(tf.global_variables_initializer())
            for suffix, version, refused in (
                ("", tf.train.SaverDef.V2, ()),
                ("_v1", tf.train.SaverDef.V1, V1_REFUSES),
            ):
                known = {name: one for name, one in named.items() if name not in refused}
                tf.train.Saver(known, write_version=version).save(
                    sess, os.path.join(out, "dtypes" + suffix)
                )
                tf.train.Saver(parts, write_version=version, sharded=bool(suffix)).save(
                    sess, os.path.join(out, "slices" + suffix)
                )


def averaged(out):
    """A table of three partitions dealt by mod, and its moving average: each row holds its id."""
    with tf.Graph().as_default():
        ids = np.repeat(np.arange(31, dtype=np.float32)[:, None], 2, axis=1)
        user = tf.get_variable("user", [31, 2], partitioner=tf.fixed_size_partitioner(3))
        lookup(user, tf.placeholder(tf.int64, [None]), "mod")
        average = tf.train.ExponentialMovingAverage(0.5)
        average.apply(list(user))
        with session() as sess:
            sess.run(tf.global_variables_initializer())
            for number, part in enumerate(user):
                sess.run([tf.assign(one, ids[number::3]) for one in (part, average.average(part))])
            tf.train.Saver().save(sess, os.path.join(out, "averaged"))


def swapped(out):
    """A trained table of three partitions, whose average a swapping_saver stores under its name."""
    from tensorflow.contrib.opt.python.training.moving_average_optimizer import (
        MovingAverageOptimizer,
    )

    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [None])
        user = tf.get_variable("user", [31, 2], partitioner=tf.fixed_size_partitioner(3))
        kernel = tf.get_variable("kernel", [2])
        inner = tf.train.AdagradOptimizer(0.1)
        outer = MovingAverageOptimizer(inner, 0.5)
        train = outer.minimize(tf.reduce_sum(tf.square(lookup(user, ids, "mod") * kernel)))

        def all_rows(of_part):
            return lookup([of_part(part) for part in user], np.arange(31, dtype=np.int64), "mod")

        want = {
            "weights": all_rows(lambda part: part),
            "average": all_rows(outer._ema.average),
            "accumulator": all_rows(lambda part: inner.get_slot(part, "accumulator")),
        }
        with session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(STEPS):
                sess.run(train, {ids: [1, 2, 3, 30]})
            outer.swapping_saver().save(sess, os.path.join(out, "swapped"))
            np.savez(os.path.join(out, "swapped.npz"), **sess.run(want))


def every_dtype(out):
    """One tensor of each data type that this TensorFlow can save, whether or not a variable may."""
    random = np.random.RandomState(4)
    names = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
    names += [sign + "int" + size for sign in ("", "u") for size in ("8", "16", "32", "64")]
    names += ["qint8", "quint8", "qint16", "quint16", "qint32"]
    small = ["float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz"]
    small += ["float8_e5m2fnuz", "int4", "uint4", "int2", "uint2", "float4_e2m1fn"]
    tensors = {}
    with tf.Graph().as_default(), session() as sess:
        for name in names:
            dtype = tf.as_dtype(name)
            bits = random.randint(0, 256, 48).astype(np.uint8)
            tensors[name] = tf.bitcast(tf.reshape(bits, [-1, dtype.size]), dtype)
            if dtype.size == 1:
                tensors[name] = tf.reshape(tensors[name], [-1])
        for name in small:
            try:
                numpy_type = tf.as_dtype(name).as_numpy_dtype
            except TypeError:  # a type of later TensorFlows
                continue
            tensors[name] = tf.constant(np.array([0, 1, 1, 0], np.int8).astype(numpy_type))
        tensors["bool"] = tf.constant([True, False])
        tensors["string"] = tf.constant([b"", b"x" * 300, b"\x00"])
        tensors["no strings"] = tf.constant([], tf.string)
        keys, values = zip(*sorted(tensors.items()))
        prefix = os.path.join(out, "every_dtype")
        sess.run(io_ops.save_v2(prefix, keys, [""] * len(keys), values))


def long_strings(out):
    """More strings than one buffer of lengths holds, cut by rows; some of a thousand bytes."""
    with tf.Graph().as_default(), session() as sess:
        values = [b"%d" % n * (200 if n % 1000 == 0 else 1) for n in range(100000)]
        parts = [tf.constant(values[:70001]), tf.constant(values[70001:])]
        specs = ["100000 0,70001", "100000 70001,29999"]
        prefix = os.path.join(out, "long_strings")
        sess.run(io_ops.save_v2(prefix, ["strings"] * 2, specs, parts))


def by_objects(out):
    """An object-based checkpoint (tf.train.Checkpoint) with the slots of an optimizer."""
    with tf.Graph().as_default(), session() as sess:
        user = tf.get_variable("deep/user", [5, 3], use_resource=True)
        optimizer = tf.train.AdamOptimizer(0.1)
        train = optimizer.minimize(tf.reduce_sum(tf.square(user)))
        saver = tf.train.Checkpoint(embedding=user, optimizer=optimizer)
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        saver.write(os.path.join(out, "by_objects"), session=sess)


def lookup_tables(out):
    """Hash tables of contrib.lookup; the dense one with free and erased buckets."""
    with tf.Graph().as_default(), session() as sess:
        plain = lookup_ops.MutableHashTable(tf.int64, tf.float32, [0.0] * 3, name="plain")
        words = lookup_ops.MutableHashTable(tf.string, tf.int64, -1, name="words")
        dense = lookup_ops.DenseHashTable(
            tf.int64, tf.float32, [0.0] * 3, empty_key=-1, deleted_key=-2, name="dense"
        )
        ids = np.array([5, -7, 2**40, 0, 6, 8, -(2**50)], np.int64)
        values = np.arange(21, dtype=np.float32).reshape(7, 3)
        fill = [table.insert(ids, values) for table in (plain, dense)]
        fill.append(words.insert([b"a", b"\xff\x00b", b""], np.array([1, 2, 3], np.int64)))
        sess.run(fill)
        sess.run([table.remove(tf.constant(ids[2:4])) for table in (plain, dense)])
        tf.train.Saver().save(sess, os.path.join(out, "lookup_tables"))


def deeprec(out):
    """An EmbeddingVariable in two parts with Adagrad, and an increment, by the layout that
    DeepRec's sources describe: no DeepRec is at hand to write them. deeprec_moved: id 5 in two
    parts, of which the older one alone has its state, and a part without ids."""
    tensors, increment, moved = {}, {}, {}

    def add(target, name, keys, values, suffix="{}", versions=None):
        keys = np.array(sorted(keys, key=lambda key: (key % 1000, key)), np.int64)
        target[name + suffix.format("-keys")] = keys
        if values is not None:
            rows = [np.full(4, key + values, np.float32) for key in keys]
            target[name + suffix.format("-values")] = np.array(rows, np.float32).reshape(-1, 4)
        target[name + suffix.format("-freqs")] = np.abs(keys) % 7
        target[name + suffix.format("-versions")] = np.array(versions or [], np.int64)
        counts = np.bincount(keys % 1000, minlength=1000)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    for part, keys in enumerate([[2, 1002, 4, -6], [7, 1009, 3]]):
        base = "user/part_{}".format(part)
        for name, values in ((base, 0.5), (base + "/Adagrad", 0.1)):
            tensors[name + "-partition_offset"] = add(tensors, name, keys, values)
            filtered = add(tensors, name, [10 + part, 20 + part], None, "{}_filtered")
            tensors[name + "-partition_filter_offset"] = filtered
    changed = [1009, 11]  # of the second part: an id that changes, one that is now admitted
    for name, values in (("user/part_1", 100.0), ("user/part_1/Adagrad", 9.0)):
        offsets = add(increment, name + "-sparse_incr", changed, values, "{}", [5, 6])
        increment[name + "-incr_partition_offset"] = offsets
    increment = {name.replace("-sparse_incr-", "-sparse_incr_"): v for name, v in increment.items()}
    for part, keys in enumerate([[5, 7], [5, 8], []]):
        add(moved, "user/part_{}".format(part), keys, part + 0.5, "{}", [part + 3, 9][: len(keys)])
        add(moved, "user/part_{}/Adagrad".format(part), keys[part:], 10.0)
    for prefix, found in zip(
        ("deeprec", "deeprec_incr", "deeprec_moved"), (tensors, increment, moved)
    ):
        with tf.Graph().as_default(), session() as sess:
            names, values = zip(*sorted(found.items()))
            path = os.path.join(out, prefix)
            sess.run(
                io_ops.save_v2(path, names, [""] * len(names), [tf.constant(v) for v in values])
            )


def suspicious(out):
    """A table with rows of NaN, infinity and zero, and rows that Adam or Adagrad never touched."""
    values = np.ones((2000, 64), np.float32) * 3
    values[[7, 1999], 5] = np.nan, -np.inf
    values[[0, 11, 1500]] = 0
    tensors = {"t": values, "half": values.astype(np.float16)}
    for slot, initial in (("Adagrad", 0.1), ("Adam", 0), ("Adam_1", 0)):
        state = np.full((2000, 64), initial, np.float32)
        state[5:, 3] += 1  # rows 0 to 4 are untouched
        tensors[("half/" if slot == "Adagrad" else "t/") + slot] = state
    with tf.Graph().as_default(), session() as sess:
        keys, arrays = zip(*sorted(tensors.items()))
        feeds = [tf.placeholder(array.dtype, array.shape) for array in arrays]
        feeds[keys.index("half")] = tf.cast(feeds[keys.index("t")], tf.bfloat16)
        prefix = os.path.join(out, "suspicious")
        save = io_ops.save_v2(prefix, keys, [""] * len(keys), feeds)
        sess.run(save, {f: a for k, f, a in zip(keys, feeds, arrays) if k != "half"})


def many(out):
    """9,000 names: an index of several blocks."""
    with tf.Graph().as_default(), session() as sess:
        names = ["layer_{:05d}/some/long/scope/weights".format(i) for i in range(9000)]
        tensors = [tf.constant(np.full([3], i, np.float32)) for i in range(10)] * 900
        prefix = os.path.join(out, "many")
        sess.run(io_ops.save_v2(prefix + "_part", names, [""] * 9000, tensors))
        sess.run(
            tf.raw_ops.MergeV2Checkpoints(
                checkpoint_prefixes=[prefix + "_part"], destination_prefix=prefix
            )
        )


def large(out):
    """A variable of 304 MB in 4 partitions, dealt by mod; ids 0..rows-1 in column 0."""
    rows, dim, parts = 1190001, 64, 4
    with tf.Graph().as_default(), session() as sess:
        tensors, specs, start = [], [], 0
        for part in range(parts):
            ids = np.arange(part, rows, parts, dtype=np.float32)
            values = np.broadcast_to(ids[:, None], (len(ids), dim))
            tensors.append(tf.placeholder(tf.float32, values.shape))
            specs.append(("{} {} {},{}:0,{}".format(rows, dim, start, len(ids), dim), values))
            start += len(ids)
        prefix = os.path.join(out, "large")
        save = io_ops.save_v2(prefix, ["large"] * parts, [s for s, _ in specs], tensors)
        sess.run(save, {t: v for t, (_, v) in zip(tensors, specs)})


def main(out):
    for kind, resource in (("ref", False), ("resource", True)):
        adagrad = tf.train.AdagradOptimizer(0.1)
        recommender(out, "adagrad_" + kind, adagrad, ["accumulator"], resource)
        adam = tf.train.AdamOptimizer(0.1, name="Mine")
        recommender(out, "adam_" + kind, adam, ["m", "v"], resource)
    for name, (optimizer, slots) in other_optimizers().items():
        recommender(out, name, optimizer, slots, False)
    recommender(out, "sgd", tf.train.GradientDescentOptimizer(0.1), [], False)
    by_hand(out)
    poolings(out)
    conditional(out, "cond_ops", False)
    conditional(out, "cond_functions", True)
    averaged(out)
    if "--lazy-adam" in sys.argv:  # contrib, too
        swapped(out)
    slices(out)
    every_dtype(out)
    long_strings(out)
    by_objects(out)
    lookup_tables(out)
    deeprec(out)
    suspicious(out)
    many(out)
    if "--large" in sys.argv:
        large(out)


if __name__ == "__main__":
    main(sys.argv[1])
