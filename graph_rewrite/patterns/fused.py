"""FusedBatchNorm in its three versions: inputs x, gamma, beta, mean, variance; outputs y, 1, 2.

In training, output 1 is the mean of the batch and output 2 its variance x n / (n - 1), on every
device (tensorflow/core/kernels/fused_batch_norm_op.cc).
"""

from graph_rewrite.patterns.language import op

FUSED = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")

FUSED_MEAN = op(FUSED, "x", name="mean", output=1, is_training=True)
FUSED_VARIANCE = op(FUSED, "x", name="variance", output=2, is_training=True)

# The channel axis by its data_format.
CHANNEL_AXIS = {"NHWC": 3, "NCHW": 1, "NDHWC": 4, "NCDHW": 1}
