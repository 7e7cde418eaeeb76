"""The next steps after a verdict, and its limits."""

from parity.calibrated import calibrated_alike
from parity.gates import METRICS
from parity.report.words.verdict import so_many, units
from parity.result import Comparison
from parity.stats.equivalence import Reason, Verdict
from parity.stats.rows_needed import taken_to_be_equal


def what_to_do(comparison: Comparison) -> str:
    """One piece of advice, by the verdict and the decision."""
    if comparison.verdict is Verdict.EQUIVALENT:
        low = any(gate.least is not None and gate.failed for gate in comparison.gates)
        return _LOOK if low else _on_gates(comparison)
    if comparison.verdict is Verdict.INCONCLUSIVE:
        return _how_to_settle(comparison)
    if comparison.delta < 0:
        return (
            "Hold the candidate back. First make sure that both models scored the same rows "
            "with the same features, then look at where the scores part."
        )
    return (
        "If the candidate was meant to be the same model, find out why it is better before you "
        "trust it: other rows, other features or labels that leaked also look like this."
    )


_LOOK = (
    "Look at the labels, the join and the scores before anything else: models that do not rank "
    "these rows as they should show nothing of a migration."
)

_ALIKE = {  # the text of `calibrated_alike`, where all is EQUIVALENT
    True: "On these rows AUC and calibration give no reason to hold the candidate back.",
    False: (
        "Hold the candidate back where its scores are used as probabilities, in bids, budgets or "
        "thresholds: its ranks are the baseline's, its calibration is not."
    ),
    None: (
        "On these rows the ranks give no reason against the candidate. Its calibration was not "
        "compared: compare probabilities before its scores are used as such."
    ),
}

_ON_GATES = {  # where AUC is settled
    Verdict.NOT_EQUIVALENT: (
        "Hold the candidate back: AUC cannot see what failed. Look at calibration, slices and "
        "days below for where the scores part."
    ),
    Verdict.INCONCLUSIVE: (
        "Compare more {}: AUC is settled, and what was required as well is not."
    ),
}


_IN_MEMORY = (
    "Compare the rows in memory (--memory), or state a wider margin beforehand: more rows would "
    "leave counts in histograms as uncertain."
)


_ANOTHER_RUN = (
    "Train a second run of the model that has one; or state how far its runs' AUCs spread, as you "
    "know it from elsewhere: --seed-sd SD."
)

_NO_INTERVAL = (
    "Require what has an interval: {} has none, and no number of rows decides it. AUC is settled."
)


def _on_gates(comparison: Comparison) -> str:
    """The advice where AUC is settled and no model is useless."""
    if comparison.decision is Verdict.EQUIVALENT:
        return _ALIKE[calibrated_alike(comparison)]
    if comparison.decision is Verdict.INCONCLUSIVE:
        for gate in comparison.gates:
            if gate.delta is not None and gate.interval is None:
                return _NO_INTERVAL.format(METRICS[gate.name])
        if any(gate.reason is Reason.RARE_FAULTS for gate in comparison.gates):
            return f"{_ON_GATES[comparison.decision].format(units(comparison))} {_RECORD}"
    return _ON_GATES[comparison.decision].format(units(comparison))


_RECORD = (
    "Or, where the candidate was converted, hand in the record of its complete verification: "
    "semisync verify PREFIX OUT --json > verified.json, and --verified verified.json here."
)


def _how_to_settle(comparison: Comparison) -> str:
    reason = comparison.reason
    if reason in (Reason.TIES, Reason.CHANCE):
        return _LOOK
    if reason is Reason.LONE_RUN:
        return _ANOTHER_RUN
    if reason is Reason.COUNTS:
        return _IN_MEMORY
    if reason is Reason.RARE_FAULTS:
        return f"{_compare_more(comparison)} {_RECORD}"
    if reason is Reason.INTERVAL:
        return _how_to_narrow(comparison)
    return _compare_more(comparison)


def _compare_more(comparison: Comparison) -> str:
    """The number of rows with which four comparisons in five are decided, if one can be named."""
    needed, rare = comparison.rows_to_settle, comparison.rare_failures
    if needed is None:
        more = units(comparison)
        return (
            f"Compare many times as many {more}: so few {more} decide here that no number can be "
            "named that would settle it."
        )
    text = f"Compare about {so_many(comparison, needed)} like these"
    if comparison.reason is Reason.RARE_FAULTS and rare is not None and not rare.carriers:
        return f"{text}, which settle it unless a few of them show a fault."
    return f"{text}; as many settle it four times out of five."


def _how_to_narrow(comparison: Comparison) -> str:
    """The interval, which lies across an edge of the margin."""
    rows, needed, rare = comparison.rows, comparison.rows_to_settle, comparison.rare_failures
    if comparison.training is not None:
        runs = comparison.training.runs_to_settle
        if runs is None:
            return f"Compare more {units(comparison)}."
        return f"Train about {runs} runs of each model and compare again."
    equal = rare is None or taken_to_be_equal(rare.carriers, comparison.reason)
    if needed is None or not equal:
        return _compare_more(comparison)
    if needed <= rows:
        return (
            f"Compare several times as many {units(comparison)}: equal models would have shown it "
            "on these four times out of five, so the difference may well be near the margin. Or "
            "look for what makes the models differ."
        )
    return (
        f"Compare more {units(comparison)}: equal models would be found equivalent four times out "
        f"of five with about {so_many(comparison, needed)} like these, {needed / rows:,.2g} times "
        "as many; or state a wider margin beforehand, if a larger difference does not matter."
    )


def limits(comparison: Comparison) -> str:
    """The verdict's limits."""
    text = (
        "The interval covers the choice of the rows alone. Two training runs of one pipeline "
        "differ as well, and one run of each model cannot show by how much."
    )
    if comparison.training is not None:
        text = "The interval covers the choice of the rows and the training runs' seeds."
    if comparison.clusters is None:
        text += (
            " The rows are taken to be independent; if users or sessions have several rows, name "
            "them as groups, or the interval may be too narrow."
        )
    return text
