"""model.py and the rest of the graph's loss as one module.

The variables that the rest reads are model.py's own parameters, in TensorFlow's layout: a loss on a
kernel trains the model's kernel. Only a BatchNorm's statistics are separate there, since otherwise
they would be moved twice.
"""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy
import torch
from torch import nn

from migrate.behaviour.in_torch import Converted
from migrate.behaviour.trained.listening import Dropped, Listening
from migrate.behaviour.trained.taps import Tap
from migrate.model.parameters import Parameter
from migrate.scoring import torch_code
from semisync.common.errors import BadInput


class Joined(nn.Module):
    """Returns the loss of a batch.

    Args:
        model: the one to train.
        nodes: its variables, by their nodes.
        taps: by the name under which `loss` takes each.
        draws: (op, tensor) of the model's random ops, in its order; None: the tensor cannot be
            fetched.
        loss: the module of the rest.

    Attributes:
        tensorflow_inputs, tensorflow_nodes: as those of a module of `load_model`.
        dropped: the dropouts of the model's first run.
    """

    def __init__(
        self,
        model: Converted,
        nodes: Mapping[str, Parameter],
        taps: Mapping[str, Tap],
        draws: Sequence[Tuple[str, Optional[str]]],
        loss: Any,
    ) -> None:
        super().__init__()
        self.model, self.loss = model.module, loss
        self._converted, self._taps, self._draws = model, dict(taps), list(draws)
        self._watched = any(tap.output is None for tap in taps.values())
        self.dropped: Optional[List[Dropped]] = None
        # An input that both read has the model's name, and is fed once.
        self._names = {
            name: next((o for o, own in model.inputs.items() if _same(own, one)), name)
            for name, one in loss.tensorflow_inputs.items()
            if name not in taps
        }
        own = {new: loss.tensorflow_inputs[old] for old, new in self._names.items()}
        self.tensorflow_inputs = {**own, **model.inputs}
        self.tensorflow_nodes = {
            node: one._replace(attribute=f"model.{one.attribute}") for node, one in nodes.items()
        }
        self._handed: Dict[str, Tuple[str, Any]] = {}
        for node, one in loss.tensorflow_nodes.items():
            if node in nodes:
                self._share(one, nodes[node])
            else:
                more = one._replace(attribute=f"loss.{one.attribute}")
                self.tensorflow_nodes[node] = more

    def forward(self, batch: Mapping[str, Any]) -> torch.Tensor:
        """The loss, from the inputs of `tensorflow_inputs` and the random values."""
        given = {name: batch[own] for name, own in self._names.items() if own in batch}
        given.update(self._run(batch))
        handed = {
            name: turned(operator.attrgetter(attribute)(self.model))
            for name, (attribute, turned) in self._handed.items()
        }
        with torch_code.explained(f"the graph's loss of what {self._converted.path} gives"):
            return torch.func.functional_call(self.loss, handed, (given,))

    def _run(self, batch: Mapping[str, Any]) -> Dict[str, torch.Tensor]:
        """The values of the taps in a run."""
        path = self._converted.path
        taken = {name: batch[name] for name in self._converted.inputs if name in batch}
        drawn = [(op, None if name is None else batch[name]) for op, name in self._draws]
        run = Listening(path, drawn)
        with torch_code.explained(path), run:
            if self._watched:
                with self._converted.watching() as names:
                    found = self.model(taken)
            else:
                names, found = {}, self.model(taken)
        run.check()
        if self.dropped is None:
            self.dropped = run.dropped
        outputs, wanted = found if isinstance(found, tuple) else (found,), self._converted.outputs
        if len(outputs) != len(wanted):
            raise BadInput(f"{path} gives {len(outputs)} outputs, and OUTPUTS lists {len(wanted)}")
        return {name: tap.read(path, outputs, run, names) for name, tap in self._taps.items()}

    def _share(self, of_loss: Parameter, of_model: Parameter) -> None:
        """Makes the loss read the model's own parameter."""
        owner, _, name = of_loss.attribute.rpartition(".")
        home = of_model.attribute.rpartition(".")[0]
        inner = self.loss.get_submodule(owner)
        if of_loss.grows:  # ids and weights grow together
            above, _, leaf = owner.rpartition(".")
            setattr(self.loss.get_submodule(above), leaf, self.model.get_submodule(home))
        # Shared statistics would be moved by both modules in one step.
        elif _is_statistic(inner, name):
            return
        elif of_loss.axes == of_model.axes and name in inner._parameters:
            # The very tensor, so that a table's look-ups are known for those of the table.
            inner._parameters[name] = operator.attrgetter(of_model.attribute)(self.model)
        else:
            # In another layout each call hands the loss the model's parameter, permuted.
            self._handed[of_loss.attribute] = of_model.attribute, _turn(of_model, of_loss)


def _is_statistic(module: nn.Module, name: str) -> bool:
    from migrate.runtime import BatchNorm

    return isinstance(module, BatchNorm) and name.startswith("running_")


def _same(one: Any, other: Any) -> bool:
    return tuple(one.tensors) == tuple(other.tensors)


def _turn(kept: Parameter, wanted: Parameter) -> Any:
    """The permutation from the order of axes of `kept` to that of `wanted`."""
    identity = tuple(range(len(kept.shape)))
    stored = numpy.argsort(kept.axes or identity)
    order = [int(stored[axis]) for axis in wanted.axes or identity]
    return lambda value: value.permute(order)
