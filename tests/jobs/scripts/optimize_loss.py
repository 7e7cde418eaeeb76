"""Click-through rate with tf.contrib.layers, on ps and worker hosts."""

import tensorflow as tf
from tensorflow.contrib import layers

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "127.0.0.1:3333", "")
flags.DEFINE_string("worker_hosts", "127.0.0.1:3334", "")
flags.DEFINE_string("job_name", "worker", "")
flags.DEFINE_integer("task_index", 0, "")
flags.DEFINE_string("input", "train.csv", "input data of this worker")
flags.DEFINE_string("model_dir", "/tmp/model", "")
flags.DEFINE_integer("batch_size", 16, "")
flags.DEFINE_float("learning_rate", 0.1, "initial learning rate")
flags.DEFINE_integer("decay_steps", 4, "")
flags.DEFINE_float("decay_rate", 0.8, "")
FLAGS = flags.FLAGS


def input_pipeline():
    dataset = tf.data.TextLineDataset(FLAGS.input).skip(1).batch(FLAGS.batch_size)
    iterator = dataset.make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    defaults = [tf.constant([0.0])] * 3 + [tf.constant([0])] * 3
    columns = tf.decode_csv(iterator.get_next(), record_defaults=defaults)
    return columns[0], columns[1:3], columns[3:]


def model(labels, numeric, ids):
    embedded = [
        layers.embed_sequence(
            tf.expand_dims(column, 1), vocab_size=size, embed_dim=6, scope="embed_%d" % i
        )[:, 0]
        for i, (column, size) in enumerate(zip(ids, [40, 25, 7]))
    ]
    net = tf.concat(embedded + [tf.stack(numeric, axis=1)], 1)
    net = layers.fully_connected(net, 16, activation_fn=tf.nn.relu)
    net = layers.fully_connected(net, 8, activation_fn=tf.nn.relu)
    logits = layers.fully_connected(net, 1, activation_fn=None)
    return tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=tf.squeeze(logits, 1))
    )


def learning_rate_decay_fn(learning_rate, global_step):
    return tf.train.exponential_decay(
        learning_rate,
        global_step,
        decay_steps=FLAGS.decay_steps,
        decay_rate=FLAGS.decay_rate,
        staircase=True,
    )


def run_worker(cluster, server):
    is_chief = FLAGS.task_index == 0
    device = "/job:worker/task:%d" % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        tf.set_random_seed(99)
        global_step = tf.contrib.framework.get_or_create_global_step()
        loss = model(*input_pipeline())
        train_op = layers.optimize_loss(
            loss=loss,
            global_step=global_step,
            learning_rate=FLAGS.learning_rate,
            optimizer="Adagrad",
            clip_gradients=10.0,
            learning_rate_decay_fn=learning_rate_decay_fn,
            summaries=["loss", "learning_rate", "gradient_norm"],
        )

    hooks = [tf.train.StepCounterHook(every_n_steps=10)]
    # filter devices, otherwise a worker that is done blocks the others
    config = tf.ConfigProto(device_filters=["/job:ps", device])
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=FLAGS.model_dir,
        save_summaries_steps=5,
        hooks=hooks,
        config=config,
    ) as session:
        while not session.should_stop():
            session.run(train_op)


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        run_worker(cluster, server)


if __name__ == "__main__":
    tf.app.run(main)
