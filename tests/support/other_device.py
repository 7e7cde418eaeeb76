"""A second device, where there is no GPU: tensors on "meta" that hold their values on the CPU.

As on a GPU, tensors of the two devices do not mix, but for scalars of the CPU, and NumPy has none
of those that are elsewhere.

    with there():
        model.to("meta")
"""

import contextlib

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

META = torch.device("meta")
_MIXED = "Expected all tensors to be on the same device, but found at least two devices"
_MAY_MIX = {torch.ops.aten.copy_.default, torch.ops.aten.index.Tensor}  # a copy; indices here


class There(torch.Tensor):
    """A tensor on the other device; `here` holds its values."""

    @staticmethod
    def __new__(cls, here):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            here.size(),
            strides=here.stride(),
            storage_offset=here.storage_offset(),
            dtype=here.dtype,
            device=META,
        )

    def __init__(self, here):
        self.here = here

    def __repr__(self):
        return f"There({self.here})"

    def tolist(self):
        """Which a GPU's tensors have, and subclasses do not."""
        return self.here.tolist()

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})


class _Tensor(TorchFunctionMode):
    """torch.tensor, which copies its values without a dispatch."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function is torch.tensor and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return torch.tensor(*args, **kwargs).to(device)
        return function(*args, **kwargs)


@contextlib.contextmanager
def there():
    """Tensors that are made on "meta" have values."""
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with _Tensor(), _Mode():
            yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swaps)


def _run(function, args, kwargs):
    flat = torch.utils._pytree.tree_leaves((args, kwargs))
    given = [one for one in flat if isinstance(one, torch.Tensor)]
    others = [one for one in given if isinstance(one, There)]
    device = kwargs.get("device")
    mixed = others and any(not isinstance(one, There) and one.dim() for one in given)
    if mixed and device is None and function not in _MAY_MIX:
        raise RuntimeError(f"{_MIXED}, meta and cpu: {function}")
    goes_there = META.type == torch.device(device).type if device is not None else bool(others)
    if "device" in kwargs and device is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    wrappers = {id(one.here): one for one in others}
    inner = tree_map(lambda one: one.here if isinstance(one, There) else one, (args, kwargs))
    found = function(*inner[0], **inner[1])

    def outer(one):
        if not isinstance(one, torch.Tensor):
            return one
        if id(one) in wrappers:
            return wrappers[id(one)]
        return There(one) if goes_there else one

    return tree_map(outer, found)
