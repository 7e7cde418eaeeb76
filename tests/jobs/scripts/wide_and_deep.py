"""Wide & Deep on a click log, distributed through TF_CONFIG.

The wide part is trained with FTRL, the deep part with Adagrad.
"""

import tensorflow as tf

tf.app.flags.DEFINE_string("model_dir", "", "Base directory for the model.")
tf.app.flags.DEFINE_string("train_data", "", "Path to the training data.")
tf.app.flags.DEFINE_string("test_data", "", "Path to the test data.")
tf.app.flags.DEFINE_integer("batch_size", 16, "Number of examples per batch.")
tf.app.flags.DEFINE_integer("train_epochs", 1, "Number of training epochs.")
FLAGS = tf.app.flags.FLAGS

_DEFAULTS = [[0], [0.0], [0.0], [""], [""], [""]]


def build_model_columns():
    """Builds a set of wide and deep feature columns."""
    price = tf.feature_column.numeric_column("price")
    hour = tf.feature_column.numeric_column("hour")
    user = tf.feature_column.categorical_column_with_hash_bucket("user", hash_bucket_size=50)
    item = tf.feature_column.categorical_column_with_hash_bucket("item", hash_bucket_size=30)
    category = tf.feature_column.categorical_column_with_vocabulary_list(
        "category", ["0", "1", "2", "3", "4", "5", "6"]
    )

    # Wide columns and deep columns.
    base_columns = [user, item, category]
    crossed_columns = [
        tf.feature_column.crossed_column(["user", "category"], hash_bucket_size=200),
        tf.feature_column.crossed_column(["item", "category"], hash_bucket_size=100),
    ]
    wide_columns = base_columns + crossed_columns
    deep_columns = [
        price,
        hour,
        tf.feature_column.indicator_column(category),
        tf.feature_column.embedding_column(user, dimension=8),
        tf.feature_column.embedding_column(item, dimension=8),
    ]
    return wide_columns, deep_columns


def build_estimator(model_dir):
    """Build an estimator appropriate for the given model type."""
    wide_columns, deep_columns = build_model_columns()
    run_config = tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=5)
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide_columns,
        linear_optimizer=tf.train.FtrlOptimizer(0.1),
        dnn_feature_columns=deep_columns,
        dnn_optimizer=tf.train.AdagradOptimizer(0.05),
        dnn_hidden_units=[20, 10],
        loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
        config=run_config,
    )


def input_fn(data_file, num_epochs, batch_size):
    """Generate an input function for the Estimator."""

    def parse_csv(value):
        label, price, hour, user, item, category = tf.decode_csv(value, record_defaults=_DEFAULTS)
        features = {
            "price": price,
            "hour": hour,
            "user": user,
            "item": item,
            "category": category,
        }
        return features, tf.equal(label, 1)

    dataset = tf.data.TextLineDataset(data_file).skip(1)
    dataset = dataset.map(parse_csv, num_parallel_calls=5)
    return dataset.repeat(num_epochs).batch(batch_size)


def main(unused_argv):
    model = build_estimator(FLAGS.model_dir)
    train_spec = tf.estimator.TrainSpec(
        lambda: input_fn(FLAGS.train_data, FLAGS.train_epochs, FLAGS.batch_size)
    )
    eval_spec = tf.estimator.EvalSpec(
        lambda: input_fn(FLAGS.test_data, 1, FLAGS.batch_size), start_delay_secs=60
    )
    tf.estimator.train_and_evaluate(model, train_spec, eval_spec)


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run(main=main)
