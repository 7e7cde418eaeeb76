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
    "diagonals": [
        "matrix_diag",
        "matrix_diag_part",
        "matrix_set_diag",
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
    "images": [
        "crop_and_resize",
        "depth_to_space",
        "resize_area",
        "resize_bilinear",
        "resize_nearest",
        "space_to_depth",
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
    "ragged": [
        "ragged_gather",
        "ragged_range",
        "ragged_to_dense",
        "ragged_to_sparse",
    ],
    "random": [
        "dropout_where",
        "shuffle",
        "truncated_normal",
    ],
    "recurrent": [
        "gru_cell",
        "lstm",
        "lstm_cell",
    ],
    "reductions": [
        "bincount",
        "cumprod",
        "cumsum",
        "dense_bincount",
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
    "sets": [
        "dense_and_sparse_sets",
        "dense_sets",
        "sparse_sets",
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
