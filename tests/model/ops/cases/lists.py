"""TensorArrays and TensorLists."""

import numpy
import tensorflow as tf

from tests.model.ops.cases.case import Case, floats, raw, strings

_X = floats(3, 2)
_SHAPE = numpy.array([2], "int32")


def _array(use, size=3, dtype=None, shape=None):
    """A TensorArray with its handle and flow."""

    def build(x):
        handle, flow = raw.TensorArrayV3(
            size=size, dtype=dtype or x.dtype, dynamic_size=True, element_shape=shape
        )
        return use(handle, flow, x)

    return build


def _written(handle, flow, x):
    flow = raw.TensorArrayWriteV3(handle=handle, index=1, value=x[0], flow_in=flow)
    return raw.TensorArrayWriteV3(handle=handle, index=0, value=x[1], flow_in=flow)


def _scattered(handle, flow, x):
    return raw.TensorArrayScatterV3(handle=handle, indices=[2, 0, 1], value=x, flow_in=flow)


def _gathered(handle, flow, indices, dtype, shape=None):
    return raw.TensorArrayGatherV3(
        handle=handle, indices=indices, flow_in=flow, dtype=dtype, element_shape=shape
    )


def _list(use):
    """The TensorList of a tensor's rows."""
    return lambda x: use(raw.TensorListFromTensor(tensor=x, element_shape=_SHAPE), x)


def _stacked(items, dtype="float32"):
    return raw.TensorListStack(input_handle=items, element_shape=_SHAPE, element_dtype=dtype)


def _reserved(count):
    return raw.TensorListReserve(element_shape=_SHAPE, num_elements=count, element_dtype="float32")


CASES = [
    Case(
        "TensorArrayWriteV3",
        _array(
            lambda h, f, x: raw.TensorArrayReadV3(
                handle=h, index=1, flow_in=_written(h, f, x), dtype="float32"
            )
        ),
        [_X],
    ),
    Case(
        "TensorArrayReadV3",
        _array(
            lambda h, f, x: raw.TensorArrayReadV3(
                handle=h, index=0, flow_in=_scattered(h, f, x), dtype="float32"
            )
        ),
        [_X],
    ),
    Case(
        "TensorArrayV3",
        _array(lambda h, f, x: _gathered(h, _written(h, f, x), [1, 0], "float32")),
        [_X],
    ),
    Case(
        "TensorArrayGatherV3",
        _array(lambda h, f, x: _gathered(h, _scattered(h, f, x), tf.range(3), "float32")),
        [_X],
    ),
    Case(
        "TensorArrayGatherV3",
        _array(
            lambda h, f, x: _gathered(h, f, tf.range(tf.shape(x)[0]), "float32", [2]),
            size=0,
            shape=[2],
        ),
        [floats(0, 2)],
        gradient=False,
    ),
    Case(
        "TensorArrayScatterV3",
        _array(lambda h, f, x: _gathered(h, _scattered(h, f, x), [0, 2], "string")),
        [strings("a", "b", "c")],
    ),
    Case(
        "TensorArraySizeV3",
        _array(lambda h, f, x: raw.TensorArraySizeV3(handle=h, flow_in=_scattered(h, f, x))),
        [_X],
    ),
    Case(
        "TensorArrayConcatV3",
        _array(
            lambda h, f, x: list(
                raw.TensorArrayConcatV3(handle=h, flow_in=_scattered(h, f, x), dtype="float32")
            )
        ),
        [_X],
        gradient=False,
    ),
    Case(
        "TensorArraySplitV3",
        _array(
            lambda h, f, x: raw.TensorArrayReadV3(
                handle=h,
                index=1,
                flow_in=raw.TensorArraySplitV3(
                    handle=h, value=x, lengths=numpy.array([1, 2, 0]), flow_in=f
                ),
                dtype="float32",
            )
        ),
        [_X],
        gradient=False,
    ),
    Case("TensorListFromTensor", _list(lambda items, x: _stacked(items)), [_X]),
    Case(
        "TensorListStack", _list(lambda items, x: _stacked(items)), [floats(0, 2)], gradient=False
    ),
    Case(
        "TensorListGetItem",
        _list(
            lambda items, x: raw.TensorListGetItem(
                input_handle=items, index=2, element_shape=_SHAPE, element_dtype="float32"
            )
        ),
        [_X],
    ),
    Case(
        "TensorListSetItem",
        lambda x: _stacked(
            raw.TensorListSetItem(
                input_handle=raw.TensorListSetItem(input_handle=_reserved(2), index=0, item=x[1]),
                index=1,
                item=x[0],
            )
        ),
        [_X],
    ),
    Case(
        "TensorListReserve",
        lambda x: _stacked(raw.TensorListSetItem(input_handle=_reserved(2), index=1, item=x[1])),
        [_X],
    ),
    Case(
        "TensorListPushBack",
        _list(lambda items, x: _stacked(raw.TensorListPushBack(input_handle=items, tensor=x[0]))),
        [_X],
    ),
    Case(
        "EmptyTensorList",
        lambda x: _stacked(
            raw.TensorListPushBack(
                input_handle=raw.EmptyTensorList(
                    element_shape=_SHAPE, max_num_elements=-1, element_dtype="float32"
                ),
                tensor=x[1],
            )
        ),
        [_X],
    ),
    Case(
        "TensorListPopBack",
        _list(
            lambda items, x: (lambda rest, last: [_stacked(rest), last])(
                *raw.TensorListPopBack(
                    input_handle=items, element_shape=_SHAPE, element_dtype="float32"
                )
            )
        ),
        [_X],
    ),
    Case(
        "TensorListLength", _list(lambda items, x: raw.TensorListLength(input_handle=items)), [_X]
    ),
    Case(
        "TensorListGather",
        _list(
            lambda items, x: raw.TensorListGather(
                input_handle=items, indices=[2, 0], element_shape=_SHAPE, element_dtype="float32"
            )
        ),
        [_X],
    ),
    Case(
        "TensorListScatterV2",
        lambda x: _stacked(
            raw.TensorListScatterV2(
                tensor=x, indices=[2, 0, 1], element_shape=_SHAPE, num_elements=3
            )
        ),
        [_X],
    ),
    Case(
        "TensorListScatter",
        lambda x: _stacked(
            raw.TensorListScatter(tensor=x, indices=[2, 0, 1], element_shape=_SHAPE)
        ),
        [_X],
    ),
    *(
        Case(
            op,
            _list(
                lambda items, x, op=op, more=more: list(
                    getattr(raw, op)(input_handle=items, element_dtype="float32", **more)
                )
            ),
            [_X],
            gradient=False,
        )
        for op, more in (
            ("TensorListConcat", {"element_shape": [2]}),
            (
                "TensorListConcatV2",
                {"element_shape": _SHAPE, "leading_dims": numpy.zeros(0, "int64")},
            ),
        )
    ),
    Case(
        "TensorListSplit",
        lambda x: raw.TensorListGetItem(
            input_handle=raw.TensorListSplit(
                tensor=x, element_shape=[-1, 2], lengths=numpy.array([2, 1])
            ),
            index=0,
            element_shape=[2, 2],
            element_dtype="float32",
        ),
        [_X],
    ),
    Case(
        "TensorListResize",
        _list(lambda items, x: _stacked(raw.TensorListResize(input_handle=items, size=2))),
        [_X],
    ),
]
