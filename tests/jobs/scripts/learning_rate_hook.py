"""Trains a click model; a hook sets the learning rate, as in the ResNet example.

The model is small, so that it also runs on a few CPU machines: see --ps_hosts and --worker_hosts.
"""

import tensorflow as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("ps_hosts", "", "Comma-separated list of hostname:port pairs")
tf.app.flags.DEFINE_string("worker_hosts", "", "Comma-separated list of hostname:port pairs")
tf.app.flags.DEFINE_string("job_name", "worker", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of the task")
tf.app.flags.DEFINE_string("train_data_path", "", "File pattern for training data")
tf.app.flags.DEFINE_string("log_root", "", "Parent directory of checkpoints and event files")
tf.app.flags.DEFINE_integer("batch_size", 16, "Batch size")
tf.app.flags.DEFINE_string("optimizer", "mom", "sgd or mom")


def build_input(data_path, batch_size):
    """Labels, numeric features and ids of one batch, in the order of the file."""

    def parse(line):
        columns = tf.decode_csv(line, [[0.0], [0.0], [0.0], [0], [0], [0]])
        return columns[0], tf.stack(columns[1:3]), tf.stack(columns[3:])

    dataset = tf.data.TextLineDataset(data_path).skip(1)
    dataset = dataset.map(parse, num_parallel_calls=2).batch(batch_size).prefetch(2)
    return dataset.make_one_shot_iterator().get_next()


class Model(object):
    """A residual tower over embeddings."""

    def __init__(self, labels, numeric, ids):
        self.labels = labels
        self.numeric = numeric
        self.ids = ids

    def build_graph(self):
        self.global_step = tf.train.get_or_create_global_step()
        self._build_model()
        self._build_train_op()
        tf.summary.scalar("cost", self.cost)

    def _build_model(self):
        with tf.variable_scope("init"):
            x = [
                tf.nn.embedding_lookup(self._table("ids_%d" % i, size), self.ids[:, i])
                for i, size in enumerate([40, 25, 7])
            ]
            x = tf.concat(x + [self.numeric], 1)
            x = tf.layers.dense(x, 8, name="fc")
        for i in range(2):
            with tf.variable_scope("unit_%d" % i):
                x = self._residual(x)
        with tf.variable_scope("logit"):
            logits = tf.layers.dense(x, 2)
        with tf.variable_scope("costs"):
            xent = tf.nn.sparse_softmax_cross_entropy_with_logits(
                logits=logits, labels=tf.to_int32(self.labels)
            )
            self.cost = tf.reduce_mean(xent, name="xent") + self._decay()

    def _build_train_op(self):
        self.lrn_rate = tf.constant(0.1, tf.float32)
        tf.summary.scalar("learning_rate", self.lrn_rate)

        trainable_variables = tf.trainable_variables()
        grads = tf.gradients(self.cost, trainable_variables)

        if FLAGS.optimizer == "sgd":
            optimizer = tf.train.GradientDescentOptimizer(self.lrn_rate)
        elif FLAGS.optimizer == "mom":
            optimizer = tf.train.MomentumOptimizer(self.lrn_rate, 0.9)

        self.train_op = optimizer.apply_gradients(
            zip(grads, trainable_variables), global_step=self.global_step, name="train_step"
        )

    def _table(self, name, size):
        return tf.get_variable(
            name, [size, 4], initializer=tf.random_uniform_initializer(-0.1, 0.1)
        )

    def _residual(self, x):
        orig_x = x
        x = tf.nn.leaky_relu(x, 0.1)
        x = tf.layers.dense(x, 8, activation=tf.nn.tanh, name="sub1")
        x = tf.layers.dense(x, 8, name="sub2")
        return x + orig_x

    def _decay(self):
        """L2 weight decay loss."""
        costs = [tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.op.name]
        return 0.0002 * tf.add_n(costs)


class _LearningRateSetterHook(tf.train.SessionRunHook):
    """Sets learning_rate based on global step."""

    def __init__(self, model):
        self._model = model

    def begin(self):
        self._lrn_rate = 0.05  # warm up

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(
            self._model.global_step,  # Asks for global step value.
            feed_dict={self._model.lrn_rate: self._lrn_rate},
        )

    def after_run(self, run_context, run_values):
        train_step = run_values.results
        if train_step < 3:
            self._lrn_rate = 0.05
        elif train_step < 7:
            self._lrn_rate = 0.2
        else:
            self._lrn_rate = 0.02


def train(server, cluster):
    """Training loop."""
    with tf.device(
        tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster
        )
    ):
        tf.set_random_seed(7)
        labels, numeric, ids = build_input(FLAGS.train_data_path, FLAGS.batch_size)
        model = Model(labels, numeric, ids)
        model.build_graph()

    logging_hook = tf.train.LoggingTensorHook(
        tensors={"step": model.global_step, "loss": model.cost}, every_n_iter=10
    )
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=FLAGS.task_index == 0,
        checkpoint_dir=FLAGS.log_root,
        hooks=[logging_hook, _LearningRateSetterHook(model)],
        save_summaries_steps=5,
        config=tf.ConfigProto(
            allow_soft_placement=True,
            device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index],
        ),
    ) as mon_sess:
        while not mon_sess.should_stop():
            mon_sess.run(model.train_op)


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    train(server, cluster)


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
