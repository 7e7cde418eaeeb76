"""A two-tower model from tf.keras layers, trained by hand on a ps cluster."""

import tensorflow as tf
from tensorflow import keras

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_list("ps_hosts", [], "addresses of the parameter servers")
flags.DEFINE_list("worker_hosts", [], "addresses of the workers")
flags.DEFINE_enum("job_name", "worker", ["ps", "worker"], "what this process is")
flags.DEFINE_integer("task_index", 0, "which one")
flags.DEFINE_string("training_data", None, "csv")
flags.DEFINE_string("checkpoint_dir", None, "where the model goes")
flags.DEFINE_integer("batch_size", 16, "rows per step")
flags.DEFINE_integer("train_steps", None, "stop at this global step; else when the data ends")


def make_dataset(path, batch_size):
    def parse(lines):
        label, price, hour, user, item, category = tf.io.decode_csv(
            lines, [[0.0], [0.0], [0.0], [0], [0], [0]]
        )
        inputs = {
            "context": tf.stack([price, hour], axis=1),
            "user": user,
            "item": item,
            "category": category,
        }
        return inputs, tf.expand_dims(label, 1)

    return tf.data.TextLineDataset(path).skip(1).batch(batch_size).map(parse).prefetch(1)


def make_model():
    user = keras.Input([], dtype=tf.int32, name="user")
    item = keras.Input([], dtype=tf.int32, name="item")
    category = keras.Input([], dtype=tf.int32, name="category")
    context = keras.Input([2], name="context")

    user_tower = keras.layers.Embedding(40, 8, name="user_embedding")(user)
    user_tower = keras.layers.Concatenate()([user_tower, context])
    user_tower = keras.layers.Dense(8, activation="tanh", name="user_tower")(user_tower)

    item_tower = keras.layers.Concatenate()(
        [
            keras.layers.Embedding(25, 8, name="item_embedding")(item),
            keras.layers.Embedding(7, 4, name="category_embedding")(category),
        ]
    )
    item_tower = keras.layers.Dense(8, activation="tanh", name="item_tower")(item_tower)

    score = keras.layers.Dot(axes=1)([user_tower, item_tower])
    logit = keras.layers.Dense(1, name="calibration")(score)
    return keras.Model([user, item, category, context], logit)


def train(cluster, server):
    is_chief = FLAGS.task_index == 0
    worker_device = "/job:worker/task:{}".format(FLAGS.task_index)
    tf.random.set_random_seed(20)
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=worker_device)):
        global_step = tf.train.get_or_create_global_step()
        iterator = tf.data.make_one_shot_iterator(
            make_dataset(FLAGS.training_data, FLAGS.batch_size)
        )
        inputs, label = iterator.get_next()
        model = make_model()
        logit = model([inputs[name] for name in ("user", "item", "category", "context")])
        loss = tf.reduce_mean(keras.losses.binary_crossentropy(label, logit, from_logits=True))
        optimizer = tf.train.AdamOptimizer(0.02)
        train_op = optimizer.minimize(loss, global_step, var_list=model.trainable_weights)

    hooks = []
    if FLAGS.train_steps:
        hooks.append(tf.train.StopAtStepHook(last_step=FLAGS.train_steps))
    config = tf.ConfigProto(device_filters=["/job:ps", worker_device])
    with tf.train.MonitoredTrainingSession(
        server.target, is_chief, FLAGS.checkpoint_dir, hooks=hooks, config=config
    ) as session:
        while not session.should_stop():
            session.run(train_op)


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts})
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    train(cluster, server)


if __name__ == "__main__":
    tf.app.run()
