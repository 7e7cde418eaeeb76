"""Each op's effect on a value: the one table for all that reads a graph, a job's or a file's.

The op types of one effect are a set, for reference and resource variables alike; `|` joins sets.
Nothing here needs TensorFlow.
"""

import re
from typing import Any, Dict

# Control flow of version 1. A value enters a loop, leaves it, goes on to its next iteration; it
# enters a branch; a Merge is the value of the branch that ran.
ENTER, EXIT = frozenset(["Enter", "RefEnter"]), frozenset(["Exit", "RefExit"])
NEXT = frozenset(["NextIteration", "RefNextIteration"])
SWITCH, MERGE = frozenset(["Switch", "RefSwitch"]), frozenset(["Merge", "RefMerge"])

ARGUMENT = "Argument"  # the op of a function's argument; TensorFlow has no op of this name
IFS, CASES = frozenset(["If", "StatelessIf"]), frozenset(["Case", "StatelessCase"])
LOOPS = frozenset(["While", "StatelessWhile"])
PLAIN_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])
# op: (the number of inputs before the arguments, the attributes that name functions). Of a loop
# only its body: the function of its condition gives none of the loop's outputs.
CALLS = {
    **dict.fromkeys(IFS, (1, ("then_branch", "else_branch"))),
    **dict.fromkeys(CASES, (1, ("branches",))),
    **dict.fromkeys(LOOPS, (0, ("body",))),
    **dict.fromkeys(PLAIN_CALLS, (0, ("f",))),
}
JOIN = MERGE | frozenset(CALLS)

# The same value and gradient; on the way it may be printed, checked or given a static shape.
KEEP = frozenset(
    ["Identity", "RefIdentity", "Snapshot", "PreventGradient"]
    + ["EnsureShape", "CheckNumerics", "Print"]
)
# The same value, also across the edge of a branch, loop or function, or without its gradient.
CARRY = KEEP | ENTER | EXIT | SWITCH | {"IdentityN", "StopGradient", ARGUMENT}
# The value of a variable.
READ = frozenset(["ReadVariableOp"])
# The value, and gradient, of a tensor or variable from outside of a branch or loop.
PASS = KEEP | ENTER | SWITCH | READ
# Some rows of a table.
GATHER = frozenset(["Gather", "GatherV2", "ResourceGather"])
# The same numbers in another type, or another shape.
CAST = frozenset(["Cast"])
SHAPE = frozenset(["Squeeze", "ExpandDims", "Reshape"])
PLUS = frozenset(["Add", "AddV2"])

VARIABLES = frozenset(["Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable"])
PLACEHOLDERS = frozenset(["Placeholder", "PlaceholderV2", "PlaceholderWithDefault"])
# Ops that are run for what they print or check.
TELLS = frozenset(["Assert", "Print", "PrintV2"])

# FusedBatchNorm in its three versions: inputs x, gamma, beta, mean, variance; outputs y, 1, 2. In
# training, output 1 is the mean of the batch and output 2 its variance x n / (n - 1), on every
# device (tensorflow/core/kernels/fused_batch_norm_op.cc).
FUSED = frozenset(["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])

# What an attribute is that a node lacks, as it does in an export with strip_default_attrs: of the
# ops that are recognised, and where it is not 0, False or "" (nn_ops.cc, array_ops.cc).
DEFAULTS: Dict[str, Dict[str, Any]] = {
    **dict.fromkeys(FUSED, {"is_training": True, "epsilon": 1e-4, "data_format": "NHWC"}),
    "OneHot": {"axis": -1},
}

# Changes of a whole variable, and of some of its rows.
ASSIGN = frozenset(["Assign", "AssignVariableOp"])
ADD = frozenset(["AssignAdd", "AssignAddVariableOp"])
SUBTRACT = frozenset(["AssignSub", "AssignSubVariableOp"])
WHOLE = {
    **dict.fromkeys(ASSIGN, "assign"),
    **dict.fromkeys(ADD, "add"),
    **dict.fromkeys(SUBTRACT, "subtract"),
}
SCATTER = frozenset(
    name + kind
    for name in ("Scatter", "ScatterNd", "ResourceScatter", "ResourceScatterNd")
    for kind in ("Add", "Sub", "Update", "Mul", "Div", "Min", "Max")
)
RESTORES = frozenset(["Restore", "RestoreSlice", "RestoreV2"])

# Ops that take a gradient, in this order: an optimizer's; those that add to some rows of a
# variable; these, or those that add to all of it; those that fill a SyncReplicasOptimizer's
# accumulators. "ById..." trains a hash table by raw id (migrate.graph.lowering.by_id).
TRAINING_OP = re.compile("(ById|Resource)?(Sparse)?Apply[A-Z]")
ADDS_TO_ROWS = re.compile("(Resource)?Scatter(Add|Sub)$")
PLAIN_STEP = re.compile("{}|Assign(Add|Sub)(VariableOp)?$".format(ADDS_TO_ROWS.pattern))
ACCUMULATES = re.compile("(Resource|Sparse)?AccumulatorApplyGradient$")
