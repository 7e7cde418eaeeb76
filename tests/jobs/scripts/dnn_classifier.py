"""Train a DNNClassifier on a TF_CONFIG cluster with train_and_evaluate."""

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("model_dir", None, "Where to write checkpoints")
flags.DEFINE_string("train_files", None, "CSV files to train on")
flags.DEFINE_string("eval_files", None, "CSV files to evaluate on")
flags.DEFINE_integer("batch_size", 16, "Rows per batch")
flags.DEFINE_integer("num_epochs", 1, "Passes over the training files")
flags.DEFINE_float("learning_rate", 0.05, "Learning rate")
FLAGS = flags.FLAGS

CSV_COLUMNS = ["label", "price", "hour", "user", "item", "category"]


def feature_columns():
    price = tf.feature_column.numeric_column("price")
    hour = tf.feature_column.bucketized_column(
        tf.feature_column.numeric_column("hour"), boundaries=[0.25, 0.5, 0.75]
    )
    user = tf.feature_column.categorical_column_with_hash_bucket("user", 30)
    item = tf.feature_column.categorical_column_with_hash_bucket("item", 20)
    category = tf.feature_column.categorical_column_with_vocabulary_list(
        "category", [str(i) for i in range(7)]
    )
    return [
        price,
        hour,
        tf.feature_column.embedding_column(user, dimension=6),
        tf.feature_column.embedding_column(item, dimension=4),
        tf.feature_column.indicator_column(category),
    ]


def make_input_fn(files, num_epochs):
    def input_fn():
        return tf.data.experimental.make_csv_dataset(
            files,
            FLAGS.batch_size,
            column_names=CSV_COLUMNS,
            column_defaults=[tf.int32, tf.float32, tf.float32, tf.string, tf.string, tf.string],
            label_name="label",
            num_epochs=num_epochs,
            shuffle=False,  # the log is in the order of time
        )

    return input_fn


def main(_):
    config = tf.estimator.RunConfig(model_dir=FLAGS.model_dir, tf_random_seed=1)
    optimizer = tf.train.AdagradOptimizer(learning_rate=FLAGS.learning_rate)
    classifier = tf.estimator.DNNClassifier(
        hidden_units=[24, 12],
        feature_columns=feature_columns(),
        optimizer=optimizer,
        loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
        config=config,
    )
    tf.estimator.train_and_evaluate(
        classifier,
        tf.estimator.TrainSpec(make_input_fn(FLAGS.train_files, FLAGS.num_epochs)),
        tf.estimator.EvalSpec(make_input_fn(FLAGS.eval_files, 1), throttle_secs=60),
    )


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
