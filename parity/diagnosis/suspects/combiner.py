"""Bags of ids are pooled in another way: sum, mean or sqrtn. TensorFlow's default is the mean.

All three are the same for a bag of one id. The score is the share of the distance in the rows with
larger bags, where a column of bags is given (--ids); else 1, as a sum is its mean times the number
of ids. Where nothing is known of the pooling, larger distances in larger bags are a symptom, unless
the rows of one id agree a hundred times as well: nothing but the pooling spares just them.
"""

from typing import List, NamedTuple, Optional

import numpy as np

from parity.diagnosis.case import Case
from parity.diagnosis.facts import Facts, matching_table
from parity.result import ROWS, SETTINGS, SYMPTOM, Suspect

NAME = "pooling of ids"


def suspect(case: Case) -> Optional[Suspect]:
    """Compares the combiners, and rows of one id with rows of several."""
    evidence = _differing(case)
    known = bool(evidence)
    score, basis = float(known), SETTINGS
    rows = _by_rows(case)
    if rows is not None:
        score, basis = rows.share, ROWS if known or rows.one_id_agrees else SYMPTOM
        evidence.append(rows.words)
    if not evidence:
        return None
    return Suspect(
        NAME,
        score,
        tuple(evidence),
        "Pool as the baseline does: TensorFlow's embedding_lookup_sparse takes the mean unless a "
        "combiner is named, TorchRec's EmbeddingBagConfig the sum; for sqrtn give weights and sum.",
        basis,
    )


def _differing(case: Case) -> List[str]:
    """A sentence per table that is pooled in two ways."""
    if case.models is None:
        return []
    sentences = []
    for table in sorted({name for facts in case.models for name in facts.combiners}):
        old, new = (_combiner(facts, table) for facts in case.models)
        if old is not None and new is not None and old != new:
            bags = f"Table {table} is" if table else "Bags of ids are"
            sentences.append(
                f"{bags} pooled by {old} in the baseline and by {new} in the candidate."
            )
    return sentences


def _combiner(facts: Facts, table: str) -> Optional[str]:
    same = matching_table(table, facts.combiners)
    return facts.combiners.get("" if same is None else same)


class _Bags(NamedTuple):
    """The difference between rows of several ids and rows of one id."""

    share: float
    one_id_agrees: bool
    words: str


def _by_rows(case: Case) -> Optional[_Bags]:
    """The column of bags whose larger ones have the largest share; None if none has a share."""
    best = None
    for column, ids in case.ids.items():
        if case.apart is None or ids.lengths is None:
            continue
        several = ids.lengths > 1
        share = case.apart.share(several)
        if share > (best.share if best else 0.0):
            squares = (case.apart.new - case.apart.old) ** 2
            single, more = (float(np.sqrt(squares[rows].mean())) for rows in (~several, several))
            best = _Bags(
                share,
                single * 100 <= more,
                f"Scores of rows with one id in {column} are {single:.2g} apart, of rows with "
                f"several ({several.mean():.0%} of all) {more:.2g} (root mean square).",
            )
    return best
