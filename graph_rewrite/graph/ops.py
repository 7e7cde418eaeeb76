"""Each op's effect on a value: the one table for all that reads a graph, a job's or a file's.

The op types of one effect are a set, for reference and resource variables alike; `|` joins sets.
Nothing here needs TensorFlow.
"""

import re

# A value enters and leaves a loop, goes into its next iteration, enters a branch; one of several
# values, by a condition.
ENTER, EXIT = frozenset(["Enter", "RefEnter"]), frozenset(["Exit", "RefExit"])
NEXT = frozenset(["NextIteration", "RefNextIteration"])
SWITCH, MERGE = frozenset(["Switch", "RefSwitch"]), frozenset(["Merge", "RefMerge"])

ARGUMENT = "Argument"  # the op of a function's argument; TensorFlow has no op of this name
IFS, CASES = frozenset(["If", "StatelessIf"]), frozenset(["Case", "StatelessCase"])
LOOPS = frozenset(["While", "StatelessWhile"])
PLAIN_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])
# op: (the number of inputs before the arguments, the attributes that name functions)
CALLS = {
    **dict.fromkeys(IFS, (1, ("then_branch", "else_branch"))),
    **dict.fromkeys(CASES, (1, ("branches",))),
    **dict.fromkeys(LOOPS, (0, ("body",))),
    **dict.fromkeys(PLAIN_CALLS, (0, ("f",))),
}
JOIN = MERGE | frozenset(CALLS)

# The very same value and gradient, which may be printed, checked or given a shape on the way.
KEEP = frozenset(
    ["Identity", "RefIdentity", "Snapshot", "PreventGradient"]
    + ["EnsureShape", "CheckNumerics", "Print"]
)
# The same value, from outside of a branch, loop or function too, or without its gradient.
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

# Ops that take a gradient: the optimizers', those that add to some rows of a variable, these and
# those that add to all of it, and those by which a SyncReplicasOptimizer collects it. A file's row
# of a hash table is changed by its id.
TRAINING_OP = re.compile("(ById|Resource)?(Sparse)?Apply[A-Z]")
ADDS_TO_ROWS = re.compile("(Resource)?Scatter(Add|Sub)$")
PLAIN_STEP = re.compile("{}|Assign(Add|Sub)(VariableOp)?$".format(ADDS_TO_ROWS.pattern))
ACCUMULATES = re.compile("(Resource|Sparse)?AccumulatorApplyGradient$")
