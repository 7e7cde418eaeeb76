"""Clipping by the norm of all gradients, of tables by raw ids too, which torch passes over."""

from __future__ import annotations

import torch

from migrate.id_tables.embeddings import tables_of


def clip_grad_norm_(
    module: torch.nn.Module, max_norm: float, norm_type: float = 2.0
) -> torch.Tensor:
    """As torch.nn.utils.clip_grad_norm_, of the parameters and tables by raw ids of a module.

    The norm is that of the step to come, over the rows of all processes; they all call it, after
    backward.

    Args:
        module: the model that holds both.
        max_norm: of all gradients as one vector.
        norm_type: the order of the norm, or inf.

    Returns:
        The norm before, a float64 scalar.

    Examples:
        >>> from migrate.id_tables import IdEmbeddings, IdTable, clip_grad_norm_
        >>> from migrate.torchrec.optimizers import Adagrad
        >>> tables = IdEmbeddings([IdTable("user", 2, ["user"], pooling=None)])
        >>> optimizer = tables.optimizer(Adagrad, lr=0.1)
        >>> (4 * tables({"user": torch.tensor([7, 9])})["user"]).sum().backward()
        >>> clip_grad_norm_(tables, max_norm=1.0)
        tensor(8., dtype=torch.float64)
        >>> optimizer.step()
    """
    grads = [one.grad for one in module.parameters() if one.grad is not None]
    dense = [torch.linalg.vector_norm(one, norm_type, dtype=torch.float64).cpu() for one in grads]
    norms = [torch.zeros((), dtype=torch.float64), *dense]
    for tables in tables_of(module).values():
        # The look-ups' gradients belong to the tables' rows only once they are collected.
        tables.collect()
        weights = [store.weight for store in tables.stores.values()]
        rows = [one.grad._values() for one in weights if one.grad is not None]
        norms.append(tables.processes.norm(rows, norm_type))
        grads += rows
    total = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    share = float((max_norm / (total + 1e-6)).clamp(max=1.0))  # as torch has it
    for grad in grads:
        grad.mul_(share)
    return total
