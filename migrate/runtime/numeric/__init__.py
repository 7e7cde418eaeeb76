"""TensorFlow's semantics on torch tensors, where torch has no one-liner for them.

`HOME` says which module has which name; `migrate.runtime` has them all.
"""

from __future__ import annotations

from typing import Dict

_NAMES = {
    "arrays": [
        "arange",
        "band_part",
        "mirror_pad",
        "one_hot",
        "pad",
        "reverse_sequence",
        "split",
        "squeeze",
        "unbind",
    ],
    "convolution": [
        "avg_pool2d",
        "batch_to_space",
        "conv2d",
        "conv2d_transpose",
        "depthwise_conv2d",
        "max_pool2d",
        "space_to_batch",
    ],
    "elementwise": [
        "div_no_nan",
        "maximum",
        "minimum",
        "mul_no_nan",
        "select",
        "selu",
        "where",
        "xdivy",
        "xlog1py",
        "xlogy",
    ],
    "gathering": [
        "accidental_hits",
        "dynamic_partition",
        "dynamic_stitch",
        "gather",
        "gather_nd",
        "scatter_nd",
        "tensor_scatter_add",
        "tensor_scatter_update",
    ],
    "lists": [
        "concat_list",
        "gather_list",
        "read_list",
        "resize_list",
        "scatter_list",
        "split_list",
        "stack_list",
        "write_list",
    ],
    "normalisation": [
        "bias_add_channels_first",
        "fused_batch_norm",
        "local_response_norm",
        "softmax_cross_entropy",
        "sparse_softmax_cross_entropy",
    ],
    "random": [
        "dropout_where",
        "shuffle",
        "truncated_normal",
    ],
    "reductions": [
        "bincount",
        "cumprod",
        "cumsum",
        "euclidean_norm",
        "in_top_k",
        "mean_of_integers",
        "reduce_all",
        "reduce_amax",
        "reduce_amin",
        "reduce_any",
        "reduce_mean",
        "reduce_prod",
        "reduce_sum",
        "top_k",
    ],
    "segments": [
        "segment_max",
        "segment_mean",
        "segment_min",
        "segment_prod",
        "segment_sqrt_n",
        "segment_sum",
        "sparse_segment_mean",
        "sparse_segment_sqrt_n",
        "sparse_segment_sum",
        "unsorted_segment_max",
        "unsorted_segment_min",
        "unsorted_segment_prod",
        "unsorted_segment_sum",
    ],
    "selection": [
        "gather_tree",
        "non_max_suppression",
        "padded_suppression",
    ],
    "slicing": [
        "checked_slice",
        "sliced",
        "strided_slice",
    ],
    "sparse": [
        "sparse_concat",
        "sparse_fill_empty_rows",
        "sparse_reorder",
        "sparse_reshape",
        "sparse_slice",
        "sparse_split",
        "sparse_to_dense",
    ],
    "sparse_arithmetic": [
        "dense_at",
        "sparse_add",
        "sparse_matmul",
        "sparse_reduce_max",
        "sparse_reduce_sum",
        "sparse_softmax",
    ],
    "unique": [
        "list_diff",
        "unique",
    ],
}

HOME: Dict[str, str] = {
    name: f"migrate.runtime.numeric.{module}" for module, names in _NAMES.items() for name in names
}
