"""The data types of an op's outputs, which name an attribute of the node or are always the same.

    "int64": "Where"                            always
    "output_type=int64": "ArgMax"               an attribute, and its default
    "T index_type=int32": "TopKV2"              per output; the last one applies to all further
    not listed                                  "T", or "dtype" of a node that has no T

The edge of a TensorArray or a TensorList is "variant" here, whatever its type in TensorFlow: it
carries a Python list.
Source: the op definitions in tensorflow/core/ops
"""

from __future__ import annotations

from typing import Dict, Optional

from migrate.graph import attributes
from migrate.graph.metagraph import Graph, Node
from migrate.model.ops.values import OBJECT, STRINGS, TENSOR

_SAME = "T"

_BY_TYPES = {
    "bool": """All Any ApproximateEqual Equal Greater GreaterEqual InTopK InTopKV2 IsFinite IsInf
        IsNan Less LessEqual LogicalAnd LogicalNot LogicalOr NotEqual RegexFullMatch
        StaticRegexFullMatch""",
    "float32": "CropAndResize ResizeArea ResizeBilinear SparseMatMul",
    "int32": """Bucketize GatherTree NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3
        NonMaxSuppressionV4 Rank StringLength TensorArraySizeV3 TensorListLength""",
    "int64": """LookupTableSize LookupTableSizeV2 SparseReshape StringToHashBucket
        StringToHashBucketFast StringToHashBucketStrong Where""",
    "string": """AsString RegexReplace StaticRegexReplace StringJoin StringLower StringStrip
        StringUpper Substr""",
    "variant": """EmptyTensorList TensorArrayScatterV3 TensorArraySplitV3 TensorArrayV3
        TensorArrayWriteV3 TensorListFromTensor TensorListPushBack TensorListReserve
        TensorListResize TensorListScatter TensorListScatterV2 TensorListSetItem TensorListSplit""",
    "DstT": "Cast",
    "T=float32": "LRN LeakyRelu MaxPool",
    "T=int32": "InvertPermutation",
    "Tidx=int32": "Range",
    "type": "Bitcast",
    "out_type=int32": "Shape ShapeN Size LowerBound UpperBound",
    "OUT_TYPE": "DecodeCSV",
    "Tcomplex=complex64": "FFT IFFT RFFT RFFT2D",
    "Tout=complex64": "Complex",
    "Tout=float32": "ComplexAbs Imag Real",
    "Treal=float32": "IRFFT IRFFT2D",
    "Tsplits=int64 Tvalues": "RaggedGather",
    "Tsplits=int64 T=int32": "RaggedRange",
    "Tout": """BatchMatMulV3 EagerPyFunc LookupTableFind LookupTableFindV2 PyFunc PyFuncStateless
        RandomUniformInt""",
    "Tparams": "Gather GatherNd GatherV2",
    "dtype": """RandomStandardNormal RandomUniform ResourceGather ResourceGatherNd
        TensorArrayGatherV3 TensorArrayReadV3 TruncatedNormal""",
    "element_dtype": "TensorListGather TensorListGetItem TensorListStack",
    "out_type": "DecodeRaw",
    "out_type=float32": "StringToNumber",
    "output_dtype=int64": "Multinomial",
    "output_type=int64": "ArgMax ArgMin",
    "T U": "FusedBatchNormV2 FusedBatchNormV3",
    "T index_type=int32": "TopKV2",
    "T out_idx=int32": "ListDiff Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2",
    "int32 int64 float32": "ComputeAccidentalHits",
    "int64 dtype int64": "DeserializeSparse",
    "dtype int64": "TensorArrayConcatV3",
    "element_dtype int64": "TensorListConcat TensorListConcatV2",
    "int64 float32": "LogUniformCandidateSampler UniformCandidateSampler",
    "int64 T": "SparseReorder",
    "int64 T bool int64": "SparseFillEmptyRows",
    "int64 T int64": """DenseToDenseSetOperation DenseToSparseSetOperation RaggedTensorToSparse
        SparseToSparseSetOperation SparseAdd SparseConcat SparseSlice SparseSplit""",
    "int64 out_type int64": "SparseCross",
    "int64 string int64": "StringSplit StringSplitV2",
    "variant element_dtype": "TensorListPopBack",
}
_FIXED = {"bool", "float32", "int32", "int64", "string", "variant"}

TYPES: Dict[str, str] = {op: types for types, ops in _BY_TYPES.items() for op in ops.split()}


def output_dtype(graph: Graph, node: Node, output: int) -> Optional[str]:
    """TensorFlow's name of the data type of an output; None if the graph does not state it."""
    specs = TYPES.get(node.op, _SAME).split()
    if node.op == "SparseSplit":  # all indices, then all values, then all shapes
        output //= max(attributes.integer(graph, node, "num_split"), 1)
    attribute, _, default = specs[min(output, len(specs) - 1)].partition("=")
    if attribute in _FIXED:
        return attribute
    named = attributes.dtypes(graph, node, attribute)
    if named:
        # A list has a type per output; one type is that of all.
        return named[min(output, len(named) - 1)]
    return default or attributes.output_dtype(graph, node)


def kind_of(dtype: Optional[str]) -> str:
    """The kind of a value of that data type: a tensor, strings, an object."""
    if dtype == "string":
        return STRINGS
    return OBJECT if dtype in ("resource", "variant") else TENSOR
