"""HSTU, the sequence model of generative recommenders, in plain torch.

    tower = Hstu(dim=64, heads=2, blocks=2, length=200)
    states = tower(tokens, times)     # [batch, length, dim], each from the tokens up to its own

A block, for the tokens X [n, dim] of one sequence (Zhai et al. 2024, "Actions Speak Louder than
Words", equations 1 to 3):

    U, V, Q, K = split(silu(f1(norm(X))))
    A[i, j]    = silu(Q[i] K[j] + position[i - j] + time[bucket(t[i] - t[j])]) / N    for j <= i
    Y          = X + f2(norm(A V) * U)

f1, f2 are linear; A is of each head, N the longest sequence. There is no softmax, so that how often
something occurred counts.

Nothing here needs a GPU or triton.
"""

from migrate.hstu.attention import RelativeBias, attention, bucket
from migrate.hstu.block import Block, Hstu

__all__ = ["Block", "Hstu", "RelativeBias", "attention", "bucket"]
