"""A migration in words: the carried tensors, and the work left for the reader."""

from typing import Any, Dict, List, Tuple

from semisync.common.sentences import some_of
from semisync.migration.run import Migration
from semisync.migration.verdict import State


def carried(migration: Migration) -> List[Tuple[str, str]]:
    """(kind, its contents), for a table."""
    found = migration.carried
    parameters, slots = found["parameters"], found["slots"]
    rows = sum(table["rows"] for table in found["tables"])
    return [
        (
            "Features",
            "{} taken raw: {}".format(
                len(migration.features), some_of(map(_feature, migration.features)) or "none"
            ),
        ),
        (
            "Tables",
            "{} with {:,} rows: {}".format(
                len(found["tables"]), rows, some_of(map(_table, found["tables"])) or "none"
            ),
        ),
        (
            "Dense",
            "{} variables beside them, such as kernels, biases and statistics".format(
                len(found["dense"])
            ),
        ),
        (
            "Model",
            "{} parameters of {:,} values and {} buffers, which give {}".format(
                parameters["count"],
                parameters["values"],
                parameters["buffers"],
                ", ".join(found["outputs"]),
            ),
        ),
        (
            "Optimizer",
            "{}; {} slots of tables and {} of dense variables".format(
                _optimizers(found["training"]), slots["tables"], slots["dense"]
            ),
        ),
    ]


def left_to_do(migration: Migration) -> List[str]:
    """Checks that no part of the migration does, a sentence each; parts that did not pass first."""
    found = migration.carried
    left = [_of_part(part) for part in migration.parts]
    left += [
        "Look at what was not carried, {}.".format(sentence) for sentence in found["not_carried"]
    ]
    renamed = [one for one in migration.features if one["column"] not in (None, one["name"])]
    if renamed:
        left.append(
            "Give model.py its inputs by its own names; these columns have others: {}.".format(
                some_of("{column} as {name}".format(**one) for one in renamed)
            )
        )
    left += [guessed(migration)]
    if found["training"]["reason"] is None:
        left.append(
            "Train on with migrate.build_training, which has the optimizer with its slots, its "
            "rates and the global step."
        )
    left.append(
        "Serve converted/model.py: it needs torch, torchrec, semisync's migrate.runtime, and the "
        "folder that it stands in."
    )
    left += ["Note: {}".format(note) for note in found["notes"]]
    return [sentence for sentence in left if sentence]


def guessed(migration: Migration) -> str:
    """A sentence on inputs whose names are guesses; "" if there is none."""
    names = [one["name"] for one in migration.features if one["guessed"]]
    if not names:
        return ""
    return (
        "Check the names of these inputs, which are guesses from the scopes of feature columns: "
        "{}.".format(some_of(names, most=12))
    )


def _of_part(part: Any) -> str:
    """The remedy for a part that did not pass."""
    if part.state is State.NOT_RUN:
        return "Run the command again where this can be compared: {}. It did not run: {}.".format(
            part.compared, part.finding
        )
    if part.state is State.FAILED:
        return "Find out why this differs, see above: {}.".format(part.compared)
    if part.state is State.OPEN:
        return "Settle this, with more rows or another graph: {}. {}.".format(
            part.compared, part.finding
        )
    return ""


def _feature(feature: Dict[str, Any]) -> str:
    return "{} ({}{})".format(
        feature["name"], "any number of " if feature["sparse"] else "", feature["dtype"]
    )


def _table(table: Dict[str, Any]) -> str:
    trained = ", {}".format(table["optimizer"]) if table["optimizer"] else ""
    return "{} {:,} x {}{}".format(table["name"], table["rows"], table["dim"], trained)


def _optimizers(training: Dict[str, Any]) -> str:
    if training["reason"] is not None:
        return "none: {}".format(training["reason"])
    return (
        some_of(
            "{} ({}) for {} variables".format(
                one["name"],
                ", ".join("{} {:g}".format(*item) for item in sorted(one["settings"].items())),
                one["variables"],
            )
            for one in training["optimizers"]
        )
        or "none"
    )
