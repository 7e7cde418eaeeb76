"""Click logs in every format, made of the same rows."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from migrate.data import Column

SCHEMA = [
    Column("row", "key", "int64"),
    Column("user", "ids"),
    Column("history", "ids"),
    Column("interests", "weighted"),
    Column("price", "dense"),
    Column("vector", "dense", width=3),
    Column("gaps", "numbers"),
    Column("colour", "string"),
    Column("tags", "strings"),
    Column("click", "label"),
]
FORMATS = ("parquet", "orc", "tsv", "csv.gz", "jsonl")


def rows(count, seed=0):
    """`count` rows as dicts, with lists of any length, among them empty ones."""
    random = np.random.RandomState(seed)

    def some(make):
        return [make() for _ in range(random.randint(0, 4))]

    return [
        {
            "row": row,
            "user": int(random.randint(-(2**62), 2**62)),
            "history": some(lambda: int(random.randint(0, 1000))),
            "interests": some(
                lambda: {"id": int(random.randint(0, 1000)), "weight": random.randint(0, 99) / 8}
            ),
            "price": float(np.float32(random.randn())),
            "vector": [random.randint(0, 99) / 4 for _ in range(3)],
            "gaps": some(lambda: random.randint(0, 99) / 4),
            "colour": str(random.choice(["red", "blue", "grün", 'a "b"', "c,d"])),
            "tags": some(lambda: str(random.choice(["x", "y,z"]))),
            "click": int(random.randint(0, 2)),
        }
        for row in range(count)
    ]


def table(of):
    """The rows as a pyarrow.Table."""
    pair = pa.struct([("id", pa.int64()), ("weight", pa.float32())])
    types = {
        "row": pa.int64(),
        "user": pa.int64(),
        "history": pa.list_(pa.int64()),
        "interests": pa.list_(pair),
        "price": pa.float32(),
        "vector": pa.list_(pa.float32()),
        "gaps": pa.list_(pa.float64()),
        "colour": pa.string(),
        "tags": pa.list_(pa.string()),
        "click": pa.int8(),
    }
    return pa.table(
        {name: pa.array([row[name] for row in of], kind) for name, kind in types.items()}
    )


def write(path, of, **more):
    """Writes the rows in the format that the path's name ends with."""
    name = path.name
    if name.endswith(".parquet"):
        pq.write_table(table(of), path, **more)
    elif name.endswith(".orc"):
        pyarrow.orc.write_table(table(of), path, **more)
    elif ".jsonl" in name:
        path.write_text("".join(json.dumps(row) + "\n" for row in of))
    else:
        separator = "," if ".csv" in name else "\t"
        lines = [separator.join(of[0])] + [
            separator.join(_field(value, separator) for value in row.values()) for row in of
        ]
        data = "".join(line + "\n" for line in lines).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def _field(value, separator):
    if isinstance(value, list):
        value = "|".join(
            f"{one['id']}:{one['weight']}" if isinstance(one, dict) else str(one) for one in value
        )
    text = str(value)
    if separator in text or '"' in text:
        text = '"' + text.replace('"', '""') + '"'
    return text


def batch_rows(batch):
    """The real rows of a batch as dicts, by way of its tensors."""
    jagged = {**batch.sparse.to_dict(), **batch.numbers.to_dict()}
    lists = {name: [part.tolist() for part in one.to_dense()] for name, one in jagged.items()}
    weighted = batch.weighted["interests"]
    pairs = zip(weighted.to_dense(), weighted.to_dense_weights())
    dense = batch.dense.tolist()
    found = []
    for row, (ids, weights) in enumerate(pairs):
        if row == batch.rows:
            break
        found.append(
            {
                "row": batch.keys["row"][row].as_py(),
                "user": lists["user"][row][0],
                "history": lists["history"][row],
                "interests": [
                    {"id": id_, "weight": weight}
                    for id_, weight in zip(ids.tolist(), weights.tolist())
                ],
                "price": dense[row][0],
                "vector": dense[row][1:],
                "gaps": lists["gaps"][row],
                "colour": batch.strings["colour"][row].as_py().decode(),
                "tags": [tag.decode() for tag in batch.strings["tags"][row].as_py()],
                "click": int(batch.labels["click"][row]),
            }
        )
    return found
