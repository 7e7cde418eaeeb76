"""Look-ups grouped into TorchRec's collections.

    embedding_bags            EmbeddingBagCollection: bags
    weighted_embedding_bags   the same with a weight per id
    embeddings_<dim>          EmbeddingCollection: rows, of tables with one dim

One collection does the look-ups of the whole model at once, as soon as all of its ids are computed;
look-ups whose ids depend on other look-ups are in a collection of the next level. A table is in one
collection, and in none if its look-ups are on several levels: it is a parameter by itself then. If
they are of both kinds, or a max_norm scales rows down before they are pooled, its distinct rows are
looked up and pooled after it. A mean, unless all of a table's bags are means, and sqrtn, which
TorchRec does not support, are sums divided by the size of the bag or its root.
"""

from __future__ import annotations

import re
from typing import (
    Container,
    Dict,
    FrozenSet,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from graph_rewrite.graph.ops import PASS
from migrate.graph.attributes import output_dtype
from migrate.graph.interface.inputs import Inputs
from migrate.graph.metagraph import Edge, Node
from migrate.manifest.naming import table_name
from migrate.model.control.guards import NOWHERE
from migrate.model.control.regions import Regions
from migrate.model.embeddings.lookups import Lookup, find_bags, find_rows
from migrate.model.embeddings.safe_lookups import find_end, find_sparse_ids
from migrate.model.layers.layer import Modules, Subject
from migrate.model.local_names import only_input
from migrate.model.ops.arguments import plain
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameters
from migrate.model.source.names import Names

_WORDS = re.compile(r"(embedding_)?(weights?|table|embeddings?)|part_\d+")

Table = Tuple[str, ...]  # the variable nodes of its parts


class Group(NamedTuple):
    """The look-ups of one collection, by feature, and the name it should have."""

    wish: str
    lookups: Dict[str, Lookup]

    @property
    def inputs(self) -> Tuple[Edge, ...]:
        """The tensors that they read."""
        return tuple(edge for lookup in self.lookups.values() for edge in lookup.inputs)


def find_groups(
    subject: Subject,
    regions: Regions,
    parameters: Parameters,
    kernels: Container[Optional[str]],
    inputs: Inputs,
) -> List[Group]:
    """The collections of a model.

    Args:
        kernels: variables that are matrices of its layers.
        inputs: the features that it reads.
    """
    lookups = _chosen(subject, regions, parameters, kernels)
    levels = _levels(regions, lookups)
    found: Dict[Table, Set[int]] = {}
    for name, one in lookups.items():
        found.setdefault(_table(one), set()).add(levels[name])
    lookups = {name: one for name, one in lookups.items() if len(found[_table(one)]) == 1}
    names = Names()
    groups: Dict[Tuple[int, str], Group] = {}
    for node in regions.order:
        lookup = lookups.get(node.name)
        if lookup is None:
            continue
        wish = _collection(lookup, lookups, parameters)
        group = groups.setdefault((levels[node.name], wish), Group(wish, {}))
        table = parameters.saved_name(lookup.parts[0]) or lookup.parts[0].name
        feature = names.fresh(only_input(subject.graph, inputs, lookup.given) or _layer_of(table))
        group.lookups[feature] = lookup
    return [groups[key] for key in sorted(groups)]


def _layer_of(table: str) -> str:
    """A feature name for ids made of several inputs: the variable's innermost specific scope."""
    parts = table.split("/")
    telling = [part for part in parts if not _WORDS.fullmatch(part)] or parts
    return telling[-1]


def _table(lookup: Lookup) -> Table:
    return tuple(part.name for part in lookup.parts)


def _chosen(
    subject: Subject,
    regions: Regions,
    parameters: Parameters,
    kernels: Container[Optional[str]],
) -> Dict[str, Lookup]:
    """The look-ups of the collections, by the node that each ends at."""
    rows = {node.name: find_rows(subject, node) for node in regions.order}
    known = {name: found for name, found in rows.items() if found is not None}
    bags: Dict[str, Lookup] = {}
    for node in regions.order:
        bag = find_bags(subject, node, known)
        if bag is not None:
            bags[node.name] = bag
    # TensorFlow 2.x pools a plain variable directly: such bags read the table without a gather.
    of_tables = {
        name: bag
        for name, bag in bags.items()
        if subject.variable(subject.graph.nodes[name].inputs[0]) is not None
    }
    looked_up = _only_looked_up(subject, regions, {**known, **of_tables}, parameters)
    fit = {table for table in looked_up if not any(name in kernels for name in table)}
    chosen = {name: bag for name, bag in bags.items() if _table(bag) in fit}
    # Tables with rows that are read one by one, or clipped before they are pooled.
    by_rows = {_table(known[name]) for name in _read_without_bags(regions, known, chosen)}
    by_rows |= {_table(bag) for bag in chosen.values() if bag.max_norm is not None}
    chosen = {name: bag._replace(by_rows=_table(bag) in by_rows) for name, bag in chosen.items()}
    for name in _read_without_bags(regions, known, chosen):
        if _table(known[name]) in fit:
            chosen[name] = known[name]
    users = regions.readers()
    whole = [_with_sparse_ids(subject, lookup, users) for lookup in chosen.values()]
    return {lookup.node: lookup for lookup in whole}


def _with_sparse_ids(subject: Subject, bags: Lookup, users: Dict[str, List[Node]]) -> Lookup:
    """The whole of a safe_embedding_lookup_sparse, where `bags` is part of one."""
    if bags.segments is None:
        return bags
    sparse = find_sparse_ids(subject, bags.ids, bags.segments, bags.weights)
    if sparse is None:
        return bags
    end = find_end(subject, subject.graph.nodes[bags.node], sparse, users)
    return bags if end is None else bags._replace(node=end[0], sparse=end[1])


def _only_looked_up(
    subject: Subject, regions: Regions, rows: Mapping[str, Lookup], parameters: Parameters
) -> FrozenSet[Table]:
    """The tables that are needed only for look-ups by one rule, at the top level."""
    gathers = {_table(lookup) for lookup in rows.values()}
    readers: Dict[str, Set[str]] = {}
    for node in regions.order:
        for edge in regions.read_by(node):
            variable = subject.variable(edge)
            if variable is not None:
                readers.setdefault(variable.name, set()).add(node.name)
    fit = set()
    for table in gathers:
        nodes = [subject.graph.nodes[name] for name in table]
        uses = {reader for name in table for reader in readers.get(name, ())}
        uses = {user for user in uses if subject.graph.nodes[user].op not in PASS}
        shape = parameters.shape(nodes[0])
        lookups = [lookup for lookup in rows.values() if _table(lookup) == table]
        ends = {name for lookup in lookups for name in (lookup.node, *lookup.gathers)}
        top = all(regions.of[lookup.node] == NOWHERE for lookup in lookups)
        is_float = output_dtype(subject.graph, nodes[0]) == "float32"
        is_table = shape is not None and len(shape) == 2 and is_float
        # A collection has the rows of a table in one order.
        one_rule = len({lookup.dealt for lookup in lookups}) == 1
        # Any other reader needs the table as a plain parameter.
        if top and is_table and one_rule and uses <= ends and parameters.whole(nodes):
            fit.add(table)
    return frozenset(fit)


def _read_without_bags(
    regions: Regions, rows: Mapping[str, Lookup], bags: Mapping[str, Lookup]
) -> List[str]:
    """The look-ups of rows that are still needed once `bags` are pooled by collections."""
    replaced = {name: bag.inputs for name, bag in bags.items()}
    return [node.name for node in regions.without(replaced) if node.name in rows]


def _levels(regions: Regions, lookups: Mapping[str, Lookup]) -> Dict[str, int]:
    # A look-up is one level above all look-ups that its ids depend on.
    levels: Dict[str, int] = {}
    for node in regions.order:
        edges = regions.read_by(node)
        before = max((levels.get(name, 0) for name, _ in edges), default=0)
        levels[node.name] = before + (node.name in lookups)
    return levels


def _collection(lookup: Lookup, lookups: Mapping[str, Lookup], parameters: Parameters) -> str:
    same = [other for other in lookups.values() if _table(other) == _table(lookup)]
    if lookup.combiner is None or lookup.by_rows:
        shape = parameters.shape(lookup.parts[0])
        assert shape is not None, lookup
        return f"embeddings_{shape[1]}"
    weighted = any(other.weights is not None for other in same)
    return "weighted_embedding_bags" if weighted else "embedding_bags"


class Collection:
    """The source of one group's collection.

    Attributes:
        attribute: of the module.
        group: the look-ups.
    """

    def __init__(self, group: Group, parameters: Parameters, modules: Modules) -> None:
        self.attribute = parameters.layer(group.wish)
        self.group = group
        self._bags = not group.wish.startswith("embeddings_")
        self._weighted = group.wish.startswith("weighted")
        features: Dict[Table, List[str]] = {}
        for feature, lookup in group.lookups.items():
            features.setdefault(_table(lookup), []).append(feature)
        # TorchRec's pooling is the table's, so that all of its bags must be means.
        self._mean = {
            table
            for table, own in features.items()
            if self._bags
            and not self._weighted
            and {group.lookups[f].combiner for f in own} == {"mean"}
        }
        tables = [self._config(parameters, own) for own in features.values()]
        kind = "EmbeddingBagCollection" if self._bags else "EmbeddingCollection"
        more = ", is_weighted=True" if self._weighted else ""
        listed = "".join(f"\n                {table}," for table in tables)
        modules[self.attribute] = (
            f"torchrec.{kind}(\n            tables=[{listed}\n            ]{more}\n        )"
        )

    def _config(self, parameters: Parameters, features: Sequence[str]) -> str:
        lookup = self.group.lookups[features[0]]
        saved = parameters.saved_name(lookup.parts[0])
        assert saved is not None, lookup
        name = table_name(saved)
        held = "embedding_bags" if self._bags else "embeddings"
        attribute = f"{self.attribute}.{held}.{name}.weight"
        parameter = parameters.joined(lookup.parts, attribute, lookup.dealt)
        rows, dim = parameter.shape
        kind = "EmbeddingBagConfig" if self._bags else "EmbeddingConfig"
        mean = ", pooling=torchrec.PoolingType.MEAN" if _table(lookup) in self._mean else ""
        return (
            f"torchrec.{kind}(name={name!r}, num_embeddings={rows}, embedding_dim={dim}, "
            f"feature_names={list(features)}{mean})"
        )

    def given(self, feature: str, value: Mapping[Edge, Value]) -> str:
        """The expression of the ids or bags to look up, from the tensors that the look-up reads."""
        lookup = self.group.lookups[feature]
        given = ", ".join(plain(value[edge]) for edge in lookup.inputs)
        if lookup.combiner is None:
            return given
        distinct = ".distinct()" if lookup.by_rows else ""
        if lookup.sparse is None:
            return f"runtime.bags({given}){distinct}"
        default, positive = lookup.sparse.default, lookup.sparse.positive
        more = "" if default is None else f", default={default}"
        more += ", positive=True" if positive else ""
        kind = "present_bags" if lookup.sparse.indices is None else "sparse_bags"
        return f"runtime.{kind}({given}{more}){distinct}"

    def call(self, given: Mapping[str, str]) -> str:
        """The expression of all look-ups, a mapping by feature, from the ids or bags of each."""
        ids = {
            feature: f"{text}.ids" if self.group.lookups[feature].by_rows else text
            for feature, text in given.items()
        }
        entries = ", ".join(f"{feature!r}: {text}" for feature, text in ids.items())
        function = "look_up_bags" if self._bags else "look_up"
        return f"runtime.{function}(self.{self.attribute}, {{{entries}}})"

    def result(self, feature: str, found: str, given: str) -> str:
        """The expression of one look-up, from the result of `call` and its ids or bags."""
        lookup = self.group.lookups[feature]
        text = f"{found}[{feature!r}]"
        if lookup.by_rows:
            rows = text if lookup.max_norm is None else lookup.max_norm.of(text)
            text = f"{given}.pooled({rows})"
        if lookup.combiner in ("mean", "sqrtn") and _table(lookup) not in self._mean:
            size = f"{given}.sizes()" if lookup.combiner == "mean" else f"{given}.norms()"
            above_0 = lookup.sparse is not None and lookup.sparse.positive
            if lookup.division == "DivNoNan" and not above_0:
                return f"runtime.div_no_nan({text}, {size})"
            return f"{text} / {size}"
        return text


def ends(groups: Sequence[Group]) -> Dict[str, Tuple[Group, str]]:
    """The group and the feature of each look-up, by its node."""
    return {
        lookup.node: (group, feature)
        for group in groups
        for feature, lookup in group.lookups.items()
    }


def names_of_ids(groups: Sequence[Group]) -> Dict[Edge, str]:
    """Names for the ids that are looked up, and for the mask of a dense feature's ids."""
    names: Dict[Edge, str] = {}
    for group in groups:
        for feature, lookup in group.lookups.items():
            names.setdefault(lookup.given, f"{feature}_ids")
            if lookup.sparse is not None and lookup.sparse.there is not None:
                names.setdefault(lookup.sparse.there, f"{feature}_present")
    return names
