"""Trains a click model with TF-Slim, asynchronously, on parameter servers."""

from __future__ import absolute_import, division, print_function

import tensorflow as tf

slim = tf.contrib.slim

tf.app.flags.DEFINE_string("master_hosts", "", "Hosts of the workers; the first is the chief.")
tf.app.flags.DEFINE_string("ps_hosts", "", "Hosts of the parameter servers.")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker.")
tf.app.flags.DEFINE_integer("task", 0, "The Task ID of this process.")
tf.app.flags.DEFINE_string("train_dir", "/tmp/tfmodel/", "Where checkpoints and logs are written.")
tf.app.flags.DEFINE_string("dataset_dir", None, "The file where the dataset is stored.")
tf.app.flags.DEFINE_integer("batch_size", 16, "The number of samples in each batch.")
tf.app.flags.DEFINE_integer("log_every_n_steps", 10, "How often logs are printed.")
tf.app.flags.DEFINE_integer("max_number_of_steps", None, "The maximum number of training steps.")
tf.app.flags.DEFINE_float("weight_decay", 0.0004, "The weight decay on the model weights.")
tf.app.flags.DEFINE_float("learning_rate", 0.05, "Initial learning rate.")

FLAGS = tf.app.flags.FLAGS


def _get_batch():
    """A batch of the dataset, through an input queue."""
    filename_queue = tf.train.string_input_producer([FLAGS.dataset_dir], shuffle=False)
    reader = tf.TextLineReader(skip_header_lines=1)
    _, line = reader.read(filename_queue)
    columns = tf.decode_csv(line, [[0.0], [0.0], [0.0], [0], [0], [0]])
    label, dense, ids = columns[0], tf.stack(columns[1:3]), tf.stack(columns[3:])
    # One thread, so that the rows keep their order.
    return tf.train.batch(
        [label, dense, ids], batch_size=FLAGS.batch_size, num_threads=1, capacity=200
    )


def click_net_arg_scope():
    return slim.arg_scope(
        [slim.fully_connected],
        activation_fn=tf.nn.elu,
        weights_regularizer=slim.l2_regularizer(FLAGS.weight_decay),
        weights_initializer=slim.variance_scaling_initializer(),
    )


def click_net(dense, ids, scope="ClickNet"):
    with tf.variable_scope(scope):
        net = [dense]
        for i, (name, size) in enumerate([("user", 40), ("item", 25), ("category", 7)]):
            weights = slim.model_variable(
                name, shape=[size, 4], initializer=tf.truncated_normal_initializer(stddev=0.1)
            )
            net.append(tf.nn.embedding_lookup(weights, ids[:, i]))
        net = tf.concat(net, 1)
        net = slim.stack(net, slim.fully_connected, [16, 8], scope="fc")
        return slim.fully_connected(net, 1, activation_fn=None, scope="logits")


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.master_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task)
    if FLAGS.job_name == "ps":
        server.join()

    with tf.Graph().as_default():
        tf.set_random_seed(3)
        with tf.device(
            tf.train.replica_device_setter(
                cluster=cluster, worker_device="/job:worker/task:%d" % FLAGS.task
            )
        ):
            slim.get_or_create_global_step()
            labels, dense, ids = _get_batch()
            with click_net_arg_scope():
                logits = click_net(dense, ids)
            slim.losses.sigmoid_cross_entropy(logits, tf.expand_dims(labels, 1))
            total_loss = slim.losses.get_total_loss()
            tf.summary.scalar("losses/total_loss", total_loss)

            optimizer = tf.train.RMSPropOptimizer(
                FLAGS.learning_rate, decay=0.9, momentum=0.9, epsilon=1.0
            )
            train_tensor = slim.learning.create_train_op(
                total_loss, optimizer, summarize_gradients=True
            )
            slim.model_analyzer.analyze_vars(slim.get_model_variables(), print_info=True)

        ###########################
        # Kicks off the training. #
        ###########################
        slim.learning.train(
            train_tensor,
            logdir=FLAGS.train_dir,
            master=server.target,
            is_chief=(FLAGS.task == 0),
            number_of_steps=FLAGS.max_number_of_steps,
            log_every_n_steps=FLAGS.log_every_n_steps,
            save_summaries_secs=0,  # each summary would take a batch out of the queue
            save_interval_secs=600,
            session_config=tf.ConfigProto(
                device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task]
            ),
        )


if __name__ == "__main__":
    tf.app.run()
