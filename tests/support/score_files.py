"""Tables written in every format that `semisync parity` reads."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet
import pytest


def write_tfrecord(path, data):
    """With TensorFlow's own writer and message."""
    tf = pytest.importorskip("tensorflow")
    kinds = {int: ("int64_list", tf.train.Int64List), float: ("float_list", tf.train.FloatList)}
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in data.to_pylist():
            features = {}
            for name, value in row.items():
                values = value if isinstance(value, list) else [value]
                values = [one.encode() if isinstance(one, str) else one for one in values]
                if values:
                    field, kind = kinds.get(type(values[0]), ("bytes_list", tf.train.BytesList))
                    features[name] = tf.train.Feature(**{field: kind(value=values)})
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def write(path, data):
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(data, path)
    elif path.suffix == ".orc":
        pyarrow.orc.write_table(data, path)
    elif path.suffix == ".tfrecord":
        write_tfrecord(path, data)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in data.to_pylist()))
    else:
        separator = "\t" if ".tsv" in path.name.lower() else ","
        with pa.output_stream(path) as stream:  # compresses by suffix
            pyarrow.csv.write_csv(
                data, stream, pyarrow.csv.WriteOptions(delimiter=separator, quoting_style="none")
            )
    return str(path)
