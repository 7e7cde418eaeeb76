"""Which chunk to ask of which source: what followers decide, and what the simulation runs.

A source's chunks are the bits of an int: bit n is chunk n of the manifest. Three rules:

1. A root is asked only for what no other follower has, but it is asked first: nobody has anything
   before it has left the root, so the root's link must never rest.
2. Everything else comes from followers, from each one chunk at a time: what all ask of one would
   queue there while others have nothing to do.
3. Among the chunks that a source could give, any; so that followers soon have different ones.

Rule 1 and the roots' own (`semisync.cluster.files.leases`) let about one copy leave a root, however
many followers there are. `benchmarks/files.py --simulate` shows what the rules are worth.
"""

import random
from typing import Any, Iterable, List, Optional, Tuple

AT_ONCE = 8  # chunks asked for at once: 64 MB of memory
OF_A_ROOT = 2  # of these: one is asked for while the other is under way
OF_A_FOLLOWER = 1


def choose(missing: int, sources: Iterable[Any], dice: random.Random) -> Optional[Tuple[Any, int]]:
    """A source and the number of a chunk to ask it for; None where there is nothing to ask now.

    Args:
      missing: the chunks that are neither here nor asked for.
      sources: with `have` (chunks), `is_root`, and `free` (whether it may be asked now, which it
        may not where OF_A_ROOT or OF_A_FOLLOWER chunks are on their way from it).
    """
    followers: List[Any] = []
    roots: List[Any] = []
    held = 0
    for source in sources:
        if not source.is_root:
            held |= source.have
        if source.free:
            (roots if source.is_root else followers).append(source)
    for group, wanted in ((roots, missing & ~held), (followers, missing)):
        dice.shuffle(group)
        for source in group:
            possible = wanted & source.have
            if possible:
                return source, any_of(possible, dice)
    return None


def any_of(chunks: int, dice: random.Random) -> int:
    """One of the chunks: the first from a random place on."""
    place = dice.randrange(chunks.bit_length())
    rest = chunks >> place
    return place + (rest & -rest).bit_length() - 1
