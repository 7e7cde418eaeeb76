"""The options of every command that feeds a data set to a model: feeds, and TensorFlow."""

import argparse
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from migrate.scoring.chosen import Asked
from migrate.scoring.model import TYPES
from parity.io.text_format import TextFormat, add_text, text_format
from semisync.common import json_text
from semisync.common.errors import UsageError


class Given(NamedTuple):
    """The values of the options.

    Attributes:
        named: (column, the model's name for it, whether it is sparse).
        feeds: {input: value} of constants.
        types: (pattern of columns, the type to which they are first converted).
        fills: (pattern of columns, the replacement of a missing value).
        text: the format of text files, whatever their names.
    """

    named: List[Tuple[str, str, bool]]
    feeds: Mapping[str, Any]
    types: List[Tuple[str, str]]
    fills: List[Tuple[str, str]]
    text: Optional[TextFormat]

    def asked(self, output: Optional[str]) -> Asked:
        """The request to the model, for that output."""
        return Asked(tuple(self.named), tuple(self.feeds.items()), output)


def add_inputs(group: Any) -> None:
    """Declares the options that `given` reads; COL in --type and --fill may be a pattern: 'C*'."""

    def several(option: str, metavar: str, text: str) -> None:
        group.add_argument(option, metavar=metavar, action="append", default=[], help=text)

    several(
        "--input",
        "COL[=NAME]",
        "feeds a column to the input or tensor NAME; by default each input that has a name takes "
        "the column of that name; one of several dimensions takes lists of lists or flat lists",
    )
    several(
        "--sparse",
        "COL[=NAME]",
        "the same for any number of values per row: a sparse input or tf.sparse_placeholder, a key "
        "of the KeyedJaggedTensor",
    )
    several("--feed", "NAME=VALUE", "a constant in JSON, such as is_training=false")
    add_types(group)
    several(
        "--fill",
        "COL=VALUE",
        "stands for a missing value; without it one ends the run, or is skipped if sparse",
    )
    add_text(group)


def add_types(group: Any) -> None:
    """Declares the option that `typed` reads."""
    group.add_argument(
        "--type",
        metavar="COL=TYPE",
        action="append",
        default=[],
        help=f"what a column is first turned into: {', '.join(TYPES)}",
    )


def given(args: argparse.Namespace) -> Given:
    """The values of the options; raises UsageError if one is not of its option's form."""
    return Given(
        named_inputs(args),
        constants(args.feed),
        typed(args),
        pairs(args.fill, "--fill"),
        text_format(args.text),
    )


def named_inputs(args: argparse.Namespace) -> List[Tuple[str, str, bool]]:
    """(column, the model's name for it, whether it is sparse) of each --input and --sparse."""
    named = [(*text.partition("=")[::2], False) for text in args.input]
    named += [(*text.partition("=")[::2], True) for text in args.sparse]
    return [(column, name or column, sparse) for column, name, sparse in named]


def add_tensorflow(group: Any) -> None:
    """Declares the options for running TensorFlow."""
    add = group.add_argument
    add(
        "--tf-python",
        metavar="PYTHON",
        help="an interpreter with TensorFlow 1.15 or 2.x (default: this one)",
    )
    add(
        "--tf-import",
        metavar="MODULE",
        action="append",
        default=[],
        help="import it before the model is opened, for its ops",
    )
    add(
        "--timeout",
        metavar="S",
        type=float,
        default=600.0,
        help="seconds for TensorFlow to open the model, or for a batch (default: %(default)g)",
    )


def pairs(texts: Sequence[str], option: str, form: str = "NAME=VALUE") -> List[Tuple[str, str]]:
    """The two sides of each "="; raises UsageError for a text without one, or without a name."""
    for text in texts:
        if text.find("=") < 1:
            raise UsageError(f"{option} takes {form}, not {text!r}")
    return [text.partition("=")[::2] for text in texts]


def constants(texts: Sequence[str]) -> Dict[str, Any]:
    """The value of each --feed; raises UsageError for one that is not JSON."""
    return dict(map(_constant, pairs(texts, "--feed")))


def typed(args: argparse.Namespace) -> List[Tuple[str, str]]:
    """(pattern of columns, type) of each --type."""
    found = pairs(args.type, "--type")
    for _, kind in found:
        if kind not in TYPES:
            raise UsageError(f"--type knows {', '.join(TYPES)}, not {kind!r}")
    return found


def _constant(pair: Tuple[str, str]) -> Tuple[str, Any]:
    try:
        return pair[0], json_text.loads(pair[1])
    except ValueError as error:
        raise UsageError(
            f"--feed {pair[0]} takes JSON, such as false, 0.5 or [1, 2], not {pair[1]!r}"
        ) from error
