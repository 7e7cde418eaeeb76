"""What `find_batch_norms` tells of one batch normalisation."""

from collections import namedtuple


class BatchNorm(
    namedtuple(
        "BatchNorm",
        "name kind op input gamma beta moving_mean moving_variance momentum epsilon axis training "
        "mean variance bessel updates dependents in_collection finding left_alone",
    )
):
    """One batch normalisation: what it computes, what it keeps, and who keeps it.

    Tensors are named as in a GraphDef ("op", "op:1"), those inside a function as
    `graph_rewrite.graph.functions` says; variables by their op, a partitioned one by what its parts
    share.

    Attributes:
      name: the scope.
      kind: "fused" or "unfused".
      op: the name of the FusedBatchNorm, of two the one for training; else of the Rsqrt (or Sqrt,
        Pow).
      input: the tensor x at the top level, outside of any branch.
      gamma, beta, moving_mean, moving_variance: variables, or None.
      momentum: a float, or the name of a tensor where it varies, while training. None without an
        update, and where only its complement is a tensor: `updates` name that as their rate.
      epsilon: a float.
      axis: the channel axes, a tuple; (-1,) where the graph does not tell how many there are.
      training: True; False; or the name of the predicate's tensor, which is true in training.
      mean, variance: the batch's statistics as the updates take them, at the top level, outside of
        branches, wherever such a tensor exists; None where no batch statistic is computed.
      bessel: whether that variance is the corrected one, x n / (n - 1), as FusedBatchNorm gives it.
      updates: the `Update`s of the moving statistics, the mean's first; one for each part.
      dependents: the names of the nodes at the top level that depend on the updates, nearest ones,
        a tuple.
      in_collection: whether all updates stand in UPDATE_OPS; False for a GraphDef.
      finding: what the graph's author should know, a sentence, or "".
      left_alone: why nothing of it may be rewritten, a sentence, or "".
    """

    __slots__ = ()

    @property
    def shareable(self):
        """Whether its moving statistics can share the fate of their batch."""
        return bool(self.updates) and not self.left_alone
