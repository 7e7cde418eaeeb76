"""Models as people train them, whose exported graphs are rewritten: a zoo with its keeper's notes.

A `Model` builds towers in the default graph, which share their variables: a job has one, the
reference one for each batch of a global step (`tests.rewrite.training`).
"""

import numpy as np

from semisync.common.compat import tf
from tests.rewrite.zoo import layers
from tests.wrap import job

MOMENTUM = 0.9  # of every BatchNorm
ITEMS, WORDS, SIZE = 11, 7, 6  # of the vocabularies; examples in a batch


class Model:
    """One of the zoo.

    Attributes:
        normalised: list of (name of a BatchNorm, its input), of every tower.
    """

    training = True  # of every BatchNorm
    fused = False  # whether TensorFlow corrects the variances of its BatchNorms by n / (n - 1)
    dense = ()  # {name of an input: its placeholder's (dtype, shape)}

    def __init__(self):
        self.normalised = []

    def inputs(self):
        """{name: placeholder} of a tower."""
        return {name: tf.placeholder(*each, name=name) for name, each in self.dense.items()}

    def batch(self, task, number, size=SIZE):
        """{name: value} of a worker's batch; a function of its arguments alone."""
        return self.draw(np.random.RandomState([task, number]), size)

    def draw(self, random, size):
        raise NotImplementedError

    def loss(self, inputs):
        """The mean loss of a tower."""
        raise NotImplementedError

    def optimizers(self):
        """[(optimizer, prefix of the names of its variables within the scope)], new ones."""
        return [(tf.train.AdagradOptimizer(0.1), "")]

    def train_op(self, loss, step):
        """How the job trains: all variables, UPDATE_OPS before, one step."""
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            ((optimizer, _),) = self.optimizers()
            return optimizer.minimize(loss, global_step=step)

    def normalise(self, x, name, **more):
        self.normalised.append((name, x))
        return layers.batch_normalization(
            x, momentum=MOMENTUM, training=self.training, name=name, fused=self.fused, **more
        )

    def dense_layer(self, x, width, name):
        kernel = tf.get_variable(name + "/kernel", [int(x.shape[-1]), width])
        bias = tf.get_variable(name + "/bias", [width], initializer=tf.zeros_initializer())
        return tf.tensordot(x, kernel, 1) + bias


class Square(Model):
    """The model of the other cluster tests: embeddings, one of them partitioned, and a kernel."""

    dense = {"ids": (tf.int64, [None, 4]), "targets": (tf.float32, [None])}

    def batch(self, task, number, size=None):
        return dict(zip(("ids", "targets"), job.batch(task, number)))

    def loss(self, inputs):
        resource = tf.get_variable_scope().use_resource
        return job.build_loss("square", inputs["ids"], inputs["targets"], resource)


class Factors(Model):
    """Two embeddings and their product: of ops that have never changed."""

    dense = {
        "user": (tf.int64, [None]),
        "item": (tf.int64, [None]),
        "ratings": (tf.float32, [None]),
    }

    def draw(self, random, size):
        return {
            "user": random.randint(0, WORDS, size),
            "item": random.randint(0, ITEMS, size),
            "ratings": random.randn(size).astype(np.float32),
        }

    def loss(self, inputs):
        users, items = tf.get_variable("users", [WORDS, 4]), tf.get_variable("items", [ITEMS, 4])
        mean = tf.get_variable("mean", [], initializer=tf.zeros_initializer())
        user = tf.nn.embedding_lookup(users, inputs["user"])
        item = tf.nn.embedding_lookup(items, inputs["item"])
        ratings = tf.reduce_sum(user * item, 1) + mean
        return tf.reduce_mean(tf.square(ratings - inputs["ratings"]))


class AdamSquare(Square):
    # With Adam's own epsilon a gradient that cancels out moves by its sign, and the order of a sum
    # decides on that.
    def optimizers(self):
        return [(tf.train.AdamOptimizer(epsilon=1e-3), "")]


class UncountedSquare(Square):
    """A job whose training does not count the global step."""

    def train_op(self, loss, step):
        ((optimizer, _),) = self.optimizers()
        return optimizer.minimize(loss)


class SyncSquare(Square):
    """The job of a SyncReplicasOptimizer of 2 gradients and 3 workers."""

    def train_op(self, loss, step):
        ((inner, _),) = self.optimizers()
        return tf.train.SyncReplicasOptimizer(inner, 2, 3).minimize(loss, global_step=step)


class ResNet(Model):
    """Convolutions with a shortcut, fused BatchNorms, momentum; the input is normalised, too."""

    fused = True
    dense = {"images": (tf.float32, [None, 6, 6, 3]), "labels": (tf.int64, [None])}

    def draw(self, random, size):
        # Each batch of another mean and spread, so that only the right batches give its statistics.
        images = random.randn(size, 6, 6, 3) * random.uniform(1, 3) + random.uniform(2, 9)
        return {"images": images.astype(np.float32), "labels": random.randint(0, 3, size)}

    def convolved(self, x, width, name):
        kernel = tf.get_variable(name + "/kernel", [3, 3, int(x.shape[-1]), width])
        return tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME")

    def loss(self, inputs):
        net = self.normalise(inputs["images"], "bn_input")
        net = self.convolved(net, 4, "stem")
        inner = tf.nn.relu(self.normalise(net, "bn_1"))
        inner = tf.nn.relu(self.normalise(self.convolved(inner, 4, "first"), "bn_2"))
        net += self.convolved(inner, 4, "second")
        pooled = tf.reduce_mean(net, [1, 2])
        logits = self.dense_layer(pooled, 3, "logits")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=inputs["labels"], logits=logits
        )
        return tf.reduce_mean(losses)

    def optimizers(self):
        return [(tf.train.MomentumOptimizer(0.05, 0.9), "")]


class SwitchedResNet(ResNet):
    """Whose placeholder says whether it trains: each BatchNorm has its conditions."""

    def inputs(self):
        return dict(super().inputs(), training=tf.placeholder(tf.bool, [], "training"))

    def draw(self, random, size):
        return dict(super().draw(random, size), training=True)

    def loss(self, inputs):
        self.training = inputs["training"]
        return super().loss(inputs)


class Slim(ResNet):
    """slim's layers under an arg_scope, a weight decay, and slim's own train op."""

    def loss(self, inputs):
        from tensorflow.contrib import slim

        def batch_norm(x, scope=None):
            name = tf.get_variable_scope().name.rpartition("/")[2] + "/BatchNorm"
            self.normalised.append((name, x))
            return slim.batch_norm(x, decay=MOMENTUM, is_training=True, fused=True, scope=scope)

        decay = slim.l2_regularizer(0.01)
        with slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_regularizer=decay,
            normalizer_fn=batch_norm,
            reuse=tf.AUTO_REUSE,
        ):
            net = slim.conv2d(inputs["images"], 4, [3, 3], scope="conv1")
            net = net + slim.conv2d(net, 4, [3, 3], scope="conv2")
            net = slim.flatten(slim.max_pool2d(net, [2, 2]))
            logits = slim.fully_connected(
                net, 3, activation_fn=None, normalizer_fn=None, scope="logits"
            )
        loss = tf.losses.sparse_softmax_cross_entropy(
            inputs["labels"], logits, loss_collection=None
        )
        kept = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        return loss + tf.add_n(kept)

    def train_op(self, loss, step):
        from tensorflow.contrib import slim

        ((optimizer, _),) = self.optimizers()
        return slim.learning.create_train_op(loss, optimizer, global_step=step)


class WideAndDeep(Model):
    """Crossed words straight into the output, trained by Ftrl; embeddings and layers by Adagrad.

    The words of an example are a sparse tensor, of which an example may have none.
    """

    def inputs(self):
        return {
            "words": tf.sparse_placeholder(tf.int64, name="words"),
            "crossed": tf.sparse_placeholder(tf.int64, name="crossed"),
            "numbers": tf.placeholder(tf.float32, [None, 2], name="numbers"),
            "labels": tf.placeholder(tf.float32, [None], name="labels"),
        }

    def draw(self, random, size):
        lengths = random.randint(0, 4, size)
        lengths[0] = 3
        places = [(row, column) for row in range(size) for column in range(lengths[row])]
        words = random.randint(0, WORDS, len(places))
        crossed = words * 5 % ITEMS
        return {
            "words": tf.SparseTensorValue(places, words, [size, 3]),
            "crossed": tf.SparseTensorValue(places, crossed, [size, 3]),
            "numbers": random.randn(size, 2).astype(np.float32),
            "labels": random.randint(0, 2, size).astype(np.float32),
        }

    def loss(self, inputs):
        weights = tf.get_variable("wide/weights", [ITEMS, 1], initializer=tf.zeros_initializer())
        bias = tf.get_variable("wide/bias", [1], initializer=tf.zeros_initializer())
        wide = tf.nn.safe_embedding_lookup_sparse([weights], inputs["crossed"], combiner="sum")
        table = tf.get_variable("deep/table", [WORDS, 4])
        vectors = tf.nn.safe_embedding_lookup_sparse([table], inputs["words"], combiner="sqrtn")
        net = tf.concat([tf.reshape(vectors, [-1, 4]), inputs["numbers"]], 1)
        net = tf.nn.relu(self.dense_layer(net, 5, "deep/hidden"))
        logits = wide + bias + self.dense_layer(net, 1, "deep/logits")
        labels = tf.expand_dims(inputs["labels"], 1)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return tf.reduce_mean(losses)

    def optimizers(self):
        ftrl = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001)
        return [(ftrl, "wide"), (tf.train.AdagradOptimizer(0.1), "deep")]

    def train_op(self, loss, step):
        parts = [
            optimizer.minimize(loss, var_list=under(prefix))
            for optimizer, prefix in self.optimizers()
        ]
        with tf.control_dependencies(parts):
            return tf.assign_add(step, 1).op


class DeepInterest(Model):
    """Attention of an item over a history of items: one table, looked up twice.

    Its activation has a BatchNorm without gamma and beta (Dice), and the history a length.
    """

    dense = {
        "item": (tf.int64, [None]),
        "history": (tf.int64, [None, 5]),
        "length": (tf.int64, [None]),
        "labels": (tf.float32, [None]),
    }

    def draw(self, random, size):
        return {
            "item": random.randint(0, ITEMS, size),
            "history": random.randint(0, ITEMS, (size, 5)),
            "length": random.randint(1, 6, size),
            "labels": random.randint(0, 2, size).astype(np.float32),
        }

    def dice(self, x, name):
        alpha = tf.get_variable(name + "/alpha", [int(x.shape[-1])])
        share = tf.sigmoid(self.normalise(x, name, center=False, scale=False))
        return alpha * (1 - share) * x + share * x

    def loss(self, inputs):
        table = tf.get_variable("items", [ITEMS, 4])
        item = tf.nn.embedding_lookup(table, inputs["item"])  # [n, 4]
        history = tf.nn.embedding_lookup(table, inputs["history"])  # [n, 5, 4]
        query = tf.tile(tf.expand_dims(item, 1), [1, 5, 1])
        pairs = tf.concat([query, history, query - history, query * history], 2)
        scores = self.dense_layer(tf.sigmoid(self.dense_layer(pairs, 6, "hidden")), 1, "score")
        scores = tf.squeeze(scores, 2)
        there = tf.sequence_mask(inputs["length"], 5)
        scores = tf.where(there, scores, tf.fill(tf.shape(scores), -1e9))
        interest = tf.reduce_sum(tf.expand_dims(tf.nn.softmax(scores), 2) * history, 1)
        net = tf.concat([interest, item, interest * item], 1)
        net = self.dice(self.dense_layer(net, 6, "first"), "dice")
        logits = tf.squeeze(self.dense_layer(net, 1, "last"), 1)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=inputs["labels"], logits=logits)
        return tf.reduce_mean(losses)

    def optimizers(self):
        return [(tf.train.AdamOptimizer(0.01, epsilon=1e-3), "")]


def under(prefix):
    """The trainable variables below a prefix of the variable scope."""
    scope = tf.get_variable_scope().name
    return tf.trainable_variables((scope + "/" if scope else "") + prefix)
