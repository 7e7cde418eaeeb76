"""The models of the zoo by name."""

from typing import Dict, Union

from tests.model.zoo.by_hand import ByHand
from tests.model.zoo.estimator import Canned
from tests.model.zoo.models import (
    canned,
    columns,
    crossing,
    declared,
    factorization,
    images,
    interest,
    lookups,
    sequences,
    tasks,
    towers,
    wide_and_deep,
)

MODELS: Dict[str, Union[ByHand, Canned]] = {
    "canned_linear": Canned(canned.linear, exports={"parsed": columns.wide}),
    "canned_linear_mean": Canned(canned.linear_mean, label="grade"),
    "canned_dnn": Canned(canned.dnn, noisy=True, exports={"raw": columns.deep}),
    "canned_dnn_classes": Canned(canned.dnn_classes, label="kind"),
    "canned_wide_and_deep": Canned(canned.wide_and_deep, noisy=True),
    "wide_and_deep": ByHand(wide_and_deep.wide_and_deep, exports=["simple"]),
    "wide_and_deep_functional": ByHand(wide_and_deep.wide_and_deep_functional, functional=True),
    "fm": ByHand(factorization.fm),
    "ffm": ByHand(factorization.ffm),
    "deepfm": ByHand(factorization.deepfm),
    "dcn": ByHand(crossing.dcn),
    "xdeepfm": ByHand(crossing.xdeepfm),
    "din": ByHand(interest.din),
    "din_prelu": ByHand(interest.din_prelu, modes=True),
    "din_batch_dice": ByHand(interest.din_batch_dice),
    "dssm": ByHand(towers.dssm),
    "youtube_dnn": ByHand(towers.youtube_dnn),
    "mmoe": ByHand(tasks.mmoe, modes=True),
    "esmm": ByHand(tasks.esmm),
    "gru": ByHand(sequences.gru),
    "lstm": ByHand(sequences.lstm),
    "attention": ByHand(sequences.attention),
    "conv": ByHand(images.conv, modes=True),
    "conv_slim": ByHand(images.conv_slim, modes=True),
    "lookups": ByHand(lookups.lookups),
    "lookups_resource": ByHand(lookups.lookups_resource),
    "words": ByHand(lookups.words),
    "input_layer": ByHand(declared.input_layer),
    "parse_example": ByHand(declared.parse_example, parsed=declared.PARSED),
    "sequence_columns": ByHand(declared.sequence_columns),
}

# What TensorFlow 2.x writes when all are asked for: one model of each kind whose graph it builds
# otherwise than 1.15 does, such as its layers, conditions, loops, columns, tables and resources.
OF_2 = [
    "wide_and_deep",
    "wide_and_deep_functional",
    "dcn",
    "din_prelu",
    "mmoe",
    "gru",
    "attention",
    "conv",
    "lookups_resource",
    "words",
    "input_layer",
    "parse_example",
]

# What 1.15 writes without LONG=1: one model of each kind.
SOME = [
    "canned_linear",
    "canned_linear_mean",
    "canned_dnn",
    "canned_wide_and_deep",
    "wide_and_deep",
    "fm",
    "deepfm",
    "dcn",
    "din",
    "dssm",
    "youtube_dnn",
    "mmoe",
    "gru",
    "conv",
    "lookups_resource",
    "words",
    "input_layer",
    "parse_example",
    "sequence_columns",
]
