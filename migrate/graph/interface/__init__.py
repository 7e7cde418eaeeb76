"""A graph's inputs and outputs: the tensors that can be fed, and those that are likely scores.

1. `feeds`: placeholders, the outputs of iterators and queues, and serialized Examples, each with
   its readers: variables, features, or a loss that takes it as labels.
2. `outputs`: the tensors that losses compare with labels, and the sigmoids and softmaxes that end
   the model.

The training half of the graph (name scopes called "gradients") and the Saver's part are left out.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional

from migrate.graph.interface.feeds import Feed, feeds
from migrate.graph.interface.outputs import Output, outputs
from migrate.graph.interface.walks import Walks
from migrate.graph.metagraph import Graph
from semisync.common.tensor_names import node_of


class Interface(NamedTuple):
    """feeds, outputs: in the order of the graph; the likeliest outputs first."""

    walks: Walks
    feeds: List[Feed]
    outputs: List[Output]

    def needed(self, tensor: str) -> List[Feed]:
        """The feeds that a tensor depends on."""
        node = node_of(tensor)
        return [feed for feed in self.feeds if node in self.walks.downstream(feed.edges)]


def label_feed(graph: Graph) -> Optional[str]:
    """The tensor that feeds the labels of the graph's losses; None if there is not exactly one."""
    fed = [feed for feed in find_interface(graph).feeds if feed.labels_of]
    return fed[0].name if len(fed) == 1 else None


def find_interface(graph: Graph) -> Interface:
    """The graph's possible feeds and likely outputs."""
    walks = Walks(graph)
    fed = feeds(walks)
    return Interface(walks, fed, outputs(walks, fed))
