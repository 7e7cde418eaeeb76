"""DeepFM over raw rows, as a job of TensorFlow 1.x has it, and its optimizer.

user is text that is hashed, before a sparse input that is averaged, the rest are ids. Every feature
has a table of its own; a row holds a linear weight and DIM factors.
"""

from benchmarks.harness.deepfm import deep_fm
from benchmarks.thirty_days_parts.answers import FEATURES
from benchmarks.thirty_days_parts.data import sparse
from semisync.common.compat import tf

DIM = 7  # so that a row has 8 numbers, with the linear weight
BUCKETS = 4096  # of user
ROWS = {  # of the other tables
    "problem": 3200,
    "skill": 128,
    "last_outcomes": 243,
    "success_rate": 20,
    "answers": 16,
    "recent_success_rate": 20,
    "skill_success_rate": 80,
    "skill_last_outcomes": 9,
    "problem_last_outcome": 16,
    "previous_answer": 16,
    "before": 6400,
}


class Model:
    """The graph: placeholders by column, `logits` [rows], `loss`."""

    def __init__(self, seed, plan):
        self._seed = seed
        self.user = tf.placeholder(tf.string, [None], name="user")
        self.ids = {
            name: tf.placeholder(tf.int64, [None], name=name) for name in FEATURES if name != "user"
        }
        self.before = tf.sparse_placeholder(tf.int64, [None, None], name="before")
        self.label = tf.placeholder(tf.float32, [None], name="label")
        vectors = [self._looked_up(name) for name in FEATURES]
        vectors.append(
            tf.nn.safe_embedding_lookup_sparse(
                self._table("before", ROWS["before"]), self.before, combiner="mean"
            )
        )
        self.logits = tf.identity(deep_fm(tf.stack(vectors, 1), self._seed + 1), name="logits")
        self.loss = tf.losses.sigmoid_cross_entropy(self.label, self.logits)

    def _looked_up(self, name):
        if name == "user":
            ids = tf.string_to_hash_bucket_fast(self.user, BUCKETS)
            return tf.nn.embedding_lookup(self._table(name, BUCKETS), ids)
        return tf.nn.embedding_lookup(self._table(name, ROWS[name]), self.ids[name])

    def _table(self, name, rows):
        self._seed += 1
        initial = tf.random_normal_initializer(stddev=0.05, seed=self._seed)
        return tf.get_variable("table_" + name, [rows, 1 + DIM], initializer=initial)

    def feed(self, columns, rows):
        """The feed dict of some rows, a slice, of a day's columns (`data.read`)."""
        before = columns["before"][rows]
        user = ["user {}".format(one).encode() for one in columns["user"][rows]]
        feed = {self.user: user, self.label: columns["label"][rows]}
        feed[self.before] = tf.SparseTensorValue(*sparse(before), before.shape)
        feed.update({tensor: columns[name][rows] for name, tensor in self.ids.items()})
        return feed


def optimizer(plan):
    """A new optimizer."""
    return tf.train.AdagradOptimizer(plan.rate, initial_accumulator_value=plan.accumulator)
