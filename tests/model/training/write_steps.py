"""Trains one small model under each optimizer and records its steps: python write_steps.py FOLDER.

FOLDER/NAME/ of each job has model.ckpt-10 with its MetaGraph and steps.npz:

    K/POINT        what step K, from 0, is fed; there are STEPS or SCHEDULED
    loss           of each step, before its update
    rate           the learning rate of each step, where the graph computes it
    after/NAME     every variable and slot, stacked: after 0 steps, after 1, ...

The model looks ids up that occur twice, that no earlier step saw and, in two bags of one table with
weights, that are none. Runs in TensorFlow 1.15 and 2.x.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow
import tensorflow.compat.v1 as tf
from tensorflow.python.training import slot_creator

BEFORE, ROWS = 10, 24
STEPS, SCHEDULED = 20, 30  # without and with a learning rate that the graph computes
ITEMS, TAGS, SIZE = 60, 40, 4
train = tf.train


def jobs():
    """{name: (optimizer of the global step, clipping of [(gradient, variable)], resource)}"""
    return {
        "sgd": (lambda step: train.GradientDescentOptimizer(exponential(step)), None, False),
        "sgd_by_value": (lambda step: train.GradientDescentOptimizer(0.1), by_value, True),
        "sgd_resource": (lambda step: train.GradientDescentOptimizer(0.1), None, True),
        "proximal_sgd": (
            lambda step: train.ProximalGradientDescentOptimizer(0.1, 0.001, 0.01),
            None,
            True,
        ),
        "momentum": (lambda step: train.MomentumOptimizer(polynomial(step), 0.9), None, False),
        "nesterov": (
            lambda step: train.MomentumOptimizer(cosine(step), 0.8, use_nesterov=True),
            by_global_norm,
            True,
        ),
        "adagrad": (lambda step: train.AdagradOptimizer(inverse(step)), scaled, False),
        "adam": (lambda step: train.AdamOptimizer(warm_up(step), epsilon=1e-4), None, True),
        "adam_ref": (lambda step: train.AdamOptimizer(0.01, epsilon=1e-4), by_norm, False),
        "adam_of_old": (lambda step: OldAdam(0.01, epsilon=1e-4), by_global_norm, False),
        "rmsprop": (
            lambda step: train.RMSPropOptimizer(piecewise(step), 0.9, 0.5, 1e-4),
            None,
            False,
        ),
        "centered_rmsprop": (
            lambda step: train.RMSPropOptimizer(0.005, 0.9, 0.0, 1e-4, centered=True),
            None,
            True,
        ),
        "ftrl": (
            lambda step: train.FtrlOptimizer(
                0.5, l1_regularization_strength=0.001, l2_regularization_strength=0.02
            ),
            None,
            False,
        ),
        "ftrl_shrinkage": (
            lambda step: train.FtrlOptimizer(
                0.1, -0.6, 0.2, 0.001, 0.0, l2_shrinkage_regularization_strength=0.05
            ),
            None,
            True,
        ),
        "proximal_adagrad": (
            lambda step: train.ProximalAdagradOptimizer(0.1, 0.2, 0.001, 0.01),
            None,
            False,
        ),
        "adadelta": (lambda step: train.AdadeltaOptimizer(1.0, 0.9, 1e-4), None, True),
        "bert": (lambda step: AdamWeightDecay(warm_up(step)), by_global_norm, False),
        "bert_resource": (lambda step: AdamWeightDecay(0.01), by_value, True),
        "fed": (lambda step: train.GradientDescentOptimizer(fed_rate()), None, True),
        **contrib(),
    }


class OldAdam(train.AdamOptimizer):
    """Its update of a table is as older versions of TensorFlow 1 build it."""

    def _apply_sparse(self, grad, var):
        power1, power2 = self._get_beta_accumulators()
        rate = self._lr_t * tf.sqrt(1 - power2) / (1 - power1)
        slots = []
        for name, beta, term in (
            ("m", self._beta1_t, grad.values),
            ("v", self._beta2_t, grad.values * grad.values),
        ):
            slot = self.get_slot(var, name)
            decayed = tf.assign(slot, slot * beta)
            slots.append(tf.scatter_add(decayed, grad.indices, term * (1 - beta)))
        step = rate * slots[0] / (tf.sqrt(slots[1]) + self._epsilon_t)
        return tf.group(tf.assign_sub(var, step), *slots)


class AdamWeightDecay(train.Optimizer):
    """As BERT's: it assigns by hand."""

    def __init__(self, rate):
        super().__init__(False, "AdamWeightDecay")
        self._learning_rate = rate

    def apply_gradients(self, pairs, global_step=None, name=None):
        """Variables of one dimension, such as biases, have no decay."""
        moves = []
        for gradient, variable in pairs:
            m, v = (slot_creator.create_zeros_slot(variable, name) for name in ("adam_m", "adam_v"))
            next_m = tf.multiply(0.9, m) + tf.multiply(1.0 - 0.9, gradient)
            next_v = tf.multiply(0.999, v) + tf.multiply(1.0 - 0.999, tf.square(gradient))
            update = next_m / (tf.sqrt(next_v) + 1e-4)
            if variable.shape.ndims > 1:
                update += 0.02 * variable
            moved = variable - self._learning_rate * update
            moves += [tf.assign(variable, moved), tf.assign(m, next_m), tf.assign(v, next_v)]
        with tf.control_dependencies(moves):  # the rate is of the step before
            return tf.assign(global_step, global_step + 1).op


def contrib():
    """Those of 1.15 alone."""
    if not hasattr(tensorflow, "contrib"):
        return {}
    lazy = tensorflow.contrib.opt.LazyAdamOptimizer
    return {
        "lazy_adam": (lambda step: lazy(0.01, epsilon=1e-4), None, False),
        "lazy_adam_resource": (lambda step: lazy(0.01, epsilon=1e-4), by_global_norm, True),
    }


def exponential(step):
    return train.exponential_decay(0.3, step, 15, 0.8, staircase=True)


def polynomial(step):
    # A power of 2: TensorFlow's optimizer of graphs multiplies by its reciprocal instead, and a
    # multiple of 30 would fall on the other side of the ceil.
    return train.polynomial_decay(0.05, step, 16, 0.01, power=2.0, cycle=True)


def cosine(step):
    return train.cosine_decay_restarts(0.05, step, 20)


def inverse(step):
    return train.inverse_time_decay(0.2, step, 10, 0.5)


def piecewise(step):
    return train.piecewise_constant(step, [18, 32], [0.01, 0.005, 0.001])


def warm_up(step):
    """Linear, then a decay; by hand."""
    done = tf.cast(step, tf.float32) / 20.0
    later = train.exponential_decay(0.02, step, 15, 0.9)
    return tf.cond(tf.less(step, 20), lambda: 0.02 * done, lambda: later)


def fed_rate():
    return tf.placeholder_with_default(tf.constant(0.1), [], name="learning_rate") * fed_scale()


def fed_scale():
    return tf.placeholder(tf.float32, [], name="rate_scale")


def by_value(pairs):
    return [(tf.clip_by_value(plain(gradient), -0.01, 0.02), each) for gradient, each in pairs]


def plain(gradient):
    return tf.convert_to_tensor(gradient)


def by_norm(pairs):
    return [(tf.clip_by_norm(gradient, 0.05), each) for gradient, each in pairs]


def by_global_norm(pairs):
    gradients, variables = zip(*pairs)
    return list(zip(tf.clip_by_global_norm(gradients, 0.2)[0], variables))


def scaled(pairs):
    """Of a loss that was scaled up; dense ones get a decay of the weights."""
    return [
        (
            tf.IndexedSlices(g.values / 4.0, g.indices, g.dense_shape)
            if isinstance(g, tf.IndexedSlices)
            else g / 4.0 + 0.001 * each,
            each,
        )
        for g, each in pairs
    ]


def build(optimizer, clip, resource, wrap=lambda optimizer: optimizer):
    """Adds a model to the default graph; returns (loss, train op, learning rate or None)."""
    item = tf.placeholder(tf.int64, [None, 3], name="item")
    tags = tf.sparse_placeholder(tf.int64, [None, None], name="tags")
    weights = tf.sparse_placeholder(tf.float32, [None, None], name="weights")
    label = tf.placeholder(tf.float32, [None], name="label")
    normal = tf.random_normal_initializer(stddev=0.3)
    with tf.variable_scope("model", use_resource=resource, initializer=normal):
        items = tf.get_variable("items", [ITEMS, SIZE])
        parts = tf.get_variable("tags", [TAGS, SIZE], partitioner=tf.fixed_size_partitioner(3))
        bias = tf.get_variable("bias_of_items", [ITEMS])
        rows = tf.nn.embedding_lookup(items, item)
        others = tf.SparseTensor(tags.indices, (tags.values + 1) % TAGS, tags.dense_shape)
        bags = [
            tf.nn.safe_embedding_lookup_sparse(
                list(parts), ids, weights, combiner="mean", partition_strategy="div"
            )
            for ids in (tags, others)
        ]
        net = tf.concat([tf.reshape(rows, [-1, 3 * SIZE]), *bags], 1)
        kernel = tf.get_variable("square", [5 * SIZE, 5 * SIZE])
        net = tf.nn.swish(tf.matmul(net, kernel))
        net = tf.layers.batch_normalization(net, training=True, momentum=0.9)
        logits = tf.layers.dense(net, 1)[:, 0] + tf.reduce_sum(tf.gather(bias, item), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    loss += 0.01 * tf.nn.l2_loss(kernel)
    step = train.get_or_create_global_step()
    trained = wrap(optimizer(step))
    loss = loss * 4.0 if clip is scaled else loss
    pairs = trained.compute_gradients(loss)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = trained.apply_gradients(clip(pairs) if clip else pairs, step)
    rate = vars(trained).get("_learning_rate", vars(trained).get("_lr"))
    return loss, train_op, rate if isinstance(rate, tf.Tensor) else None


def batch(random, step, name):
    """What a step is fed, by tensor names without ":0"."""
    highest = ITEMS // 2 if step < BEFORE else ITEMS
    item = random.randint(0, highest, [ROWS, 3])
    item[1] = item[0]
    counts = random.randint(0, 4, ROWS)
    counts[:2] = 0, 3
    ids = [random.randint(0, TAGS, count) for count in counts]
    for one in ids:
        one[1:2] = one[:1][: len(one[1:2])]
    places = [(row, k) for row, count in enumerate(counts) for k in range(count)]
    fed = {
        "item": item,
        "tags/indices": np.array(places, np.int64).reshape(-1, 2),
        "tags/values": np.concatenate(ids).astype(np.int64),
        "tags/shape": np.array([ROWS, 3], np.int64),
        "weights/values": random.choice([0.5, 1.0, 2.0], len(places)).astype(np.float32),
        "label": ((item.sum(1) + random.randint(0, 20, ROWS)) % 40 < 20).astype(np.float32),
    }
    fed["weights/indices"], fed["weights/shape"] = fed["tags/indices"], fed["tags/shape"]
    if name == "fed":
        fed["rate_scale"] = np.float32(1.0 / (1.0 + 0.1 * step))
    return fed


def write(folder, name, job):
    """Trains one job."""
    tf.reset_default_graph()
    tf.set_random_seed(5)
    optimizer, clip, resource = job
    loss, train_op, rate = build(optimizer, clip, resource)
    random = np.random.RandomState(3)
    single = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    found = {}
    with tf.Session(config=single) as session:
        session.run(tf.global_variables_initializer())

        def fed(step):
            found.update(
                ("{}/{}".format(step - BEFORE, key), value)
                for key, value in one.items()
                if step >= BEFORE
            )
            return {key + ":0": value for key, value in one.items()}

        for step in range(BEFORE):
            one = batch(random, step, name)
            session.run(train_op, fed(step))
        prefix = os.path.join(folder, name, "model.ckpt")
        train.Saver().save(session, prefix, global_step=BEFORE)
        values, losses, rates = [states(session)], [], []
        for step in range(BEFORE, BEFORE + (STEPS if rate is None else SCHEDULED)):
            one = batch(random, step, name)
            before = session.run([loss] if rate is None else [loss, rate], fed(step))
            losses.append(before[0])
            rates.append(before[1] if rate is not None else 0.0)
            session.run(train_op, fed(step))
            values.append(states(session))
    for key in values[0]:
        found["after/" + key] = np.stack([one[key] for one in values])
    path = os.path.join(folder, name, "steps.npz")
    np.savez(path, loss=np.array(losses), rate=np.array(rates), **found)


def states(session):
    """Every variable by its name in the checkpoint, the parts of one joined."""
    whole = {}
    for variable in tf.global_variables():
        info = variable._get_save_slice_info()
        key = info.full_name if info else variable.op.name
        whole.setdefault(key, []).append((info.var_offset[0] if info else 0, variable))
    parts = {
        key: [part for _, part in sorted(each, key=lambda pair: pair[0])]
        for key, each in whole.items()
    }
    return {
        key: values[0] if len(values) == 1 else np.concatenate(values)
        for key, values in session.run(parts).items()
    }


if __name__ == "__main__":
    tf.disable_eager_execution()
    chosen = sys.argv[2:] or list(jobs())
    for each in chosen:
        os.makedirs(os.path.join(sys.argv[1], each))
        write(sys.argv[1], each, jobs()[each])
