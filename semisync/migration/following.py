"""The commands that come after a migration, with the options that it was given, ready to run.

NEW_ROWS, LIVE, KEY and VALUE stand for values not known yet: rows that the model has not seen, the
scores that TensorFlow's model gave where it serves, the column that names a row, the rate of a
dropout that was off.
"""

import argparse
import json
import shlex
from typing import Any, Dict, List, NamedTuple

from semisync.common.tensor_names import in_session
from semisync.migration.run import Migration
from semisync.migration.verdict import State, Verdict


class Next(NamedTuple):
    """A possible next step, and the command that does it."""

    what: str
    command: str


def following(args: argparse.Namespace, migration: Migration) -> List[Next]:
    """The next steps of a model that was MIGRATED.

    Args:
        args: of `semisync migrate`.
    """
    if migration.verdict is not Verdict.MIGRATED:
        return []
    out, converted = migration.settings.out, migration.settings.converted
    found = []
    if any(one.name == "training" and one.state is State.PASSED for one in migration.parts):
        told = _given(args, "meta", "plugin", "asset", "input", "sparse", "type", "fill", "text")
        told = ["--input" if word == "--sparse" else word for word in told]
        train = ["semisync", "train", args.checkpoint, "--data", "NEW_ROWS", "--label", args.label]
        train += [*told, *_feeds(args, migration.carried), "--out", out + "/trained"]
        found.append(Next("train on", shlex.join(train)))
    key, scored = args.key or "KEY", out + "/scores.parquet"
    score = ["semisync", "score", "NEW_ROWS", "--converted", converted, "--key", key]
    score += _given(args, "label", "plugin", "type", "fill", "text", "column")
    score += _of_model(args, migration.features)
    score += ["--sigmoid"] if migration.settings.sigmoid or migration.carried["logit"] else []
    found.append(Next("score new rows", shlex.join([*score, "--out", scored])))
    places = ", ".join(json.dumps(one, ensure_ascii=False) for one in (converted, out, "model"))
    pack = "import migrate; print(migrate.write_wheel({}))".format(places)
    found.append(Next("pack it to serve", shlex.join(["python", "-c", pack])))
    live = ["semisync", "parity", "LIVE", scored, "--key", key, "--label", args.label]
    live += ["--baseline-score", "score", "--candidate-score", "score", "--margin"]
    live += ["{:g}".format(args.margin), "--out", out + "/live"]
    found.append(Next("compare with live scores", shlex.join(live)))
    return found


def _given(args: argparse.Namespace, *names: str) -> List[str]:
    """The words of those options that were given."""
    words: List[str] = []
    for name in names:
        value = getattr(args, name)
        for one in value if isinstance(value, list) else [value]:
            words += [] if one is None else ["--" + name, str(one)]
    return words


def _feeds(args: argparse.Namespace, carried: Dict[str, Any]) -> List[str]:
    """The constants; a dropout that was off is on in training."""
    pairs = [text.partition("=")[::2] for text in args.feed]
    told = [(name, "VALUE" if name in carried["off"] else value) for name, value in pairs]
    return [word for pair in told for word in ("--feed", "=".join(pair))]


def _of_model(args: argparse.Namespace, features: List[Dict[str, Any]]) -> List[str]:
    """The inputs and constants that model.py takes, without those of the loss or the optimizer."""
    names = {feature["name"] for feature in features}
    names.update(tensor for feature in features for tensor in feature["tensors"])
    words: List[str] = []
    for option in ("input", "sparse", "feed"):
        for text in getattr(args, option):
            column, _, name = text.partition("=")
            own = column if option == "feed" else (name or column).split(",")[0]
            if {own, in_session(own)} & names:
                words += ["--" + option, text]
    return words
