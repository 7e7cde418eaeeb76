"""The difference in AUC and the like, and the training runs that it is judged against."""

from typing import Iterator, List, Optional, Tuple

from parity import plot
from parity.formatting import percent, plain, signed, two_digits
from parity.report.markup import drawing, paragraphs, table
from parity.report.words.verdict import so_many
from parity.result import Comparison, Control, TrainingNoise
from semisync.common.sentences import some_of


def difference_section(comparison: Comparison) -> str:
    """The differences with their own errors, and the evidence for them."""
    return table([*_differences(comparison), *_sample(comparison)])


def _differences(comparison: Comparison) -> Iterator[Tuple[str, str]]:
    """The difference in AUC, with its test, and those in log loss, PCOC and GAUC that exist."""
    margin = comparison.margin
    low, high = (signed(value, margin) for value in comparison.interval)
    yield "difference in AUC", signed(comparison.delta, margin)
    yield "its standard error, paired", f"{comparison.standard_error:.2g}"
    yield f"its {percent(comparison.confidence)} interval", f"{low} to {high}"
    yield "margin", f"±{margin:g}"
    yield "p-value of no difference, two-sided", f"{comparison.p_difference:.2g}"
    by_interval = "p-value of a difference of the margin or more, by the interval alone"
    yield by_interval, f"{comparison.p_equivalence:.2g}"
    if comparison.bound is not None:
        yield (
            "certified bound of what histograms hide, within the interval",
            f"±{comparison.bound:.2g}",
        )
    for name, paired in (
        ("log loss", comparison.logloss_difference),
        ("PCOC", comparison.pcoc_difference),
        ("GAUC", comparison.gauc_difference),
    ):
        if paired is not None:
            delta, low, high = map(two_digits, (paired.delta, *paired.interval))
            yield f"difference in {name}, with its interval", f"{delta} ({low} to {high})"


def _sample(comparison: Comparison) -> Iterator[Tuple[str, str]]:
    """The rows and clusters, the differences that they exclude, and the rows that would decide."""
    rows, positives = comparison.rows, comparison.positives
    yield "rows", f"{rows:,}"
    yield "positive", f"{positives:,} ({positives / rows:.2%})"
    yield "weighted", "yes" if comparison.weighted else "no"
    if comparison.clusters is not None:
        independent = f"{comparison.standard_error_independent:.2g}"
        yield "clusters", f"{comparison.clusters:,}"
        yield "standard error if rows were independent", independent
    if comparison.design_effect is not None:
        yield "design effect of the clusters", f"{comparison.design_effect:.2f}"
    if comparison.rare_failures is not None:
        rare = comparison.rare_failures
        yield "rows of the rarer class, or clusters that hold it", f"{rare.observations:,.0f}"
        yield "rows or clusters that carry the standard error, about", f"{rare.carriers:,.0f}"
        yield "what rare faults could move the AUC by", f"±{rare.floor:.2g}"
    if comparison.rows_to_settle is not None:
        yield "what would settle it, about", so_many(comparison, comparison.rows_to_settle)


def runs_section(comparison: Comparison) -> str:
    """The baseline against itself above the comparison, and where the uncertainty comes from."""
    training = comparison.training
    if training is None:
        return ""
    return "\n".join(
        (
            paragraphs(
                "Two training runs of one pipeline differ. Unless the candidate differs from the "
                "baseline by more than the baseline differs from itself, the candidate is not to "
                "blame."
            ),
            table(
                _gaps(training, comparison.margin),
                ("|difference in AUC|", "pairs", "mean", "largest", "beyond margin"),
            ),
            drawing(
                "Each run's AUC; the band is the margin around the baseline's mean",
                plot.runs(comparison),
                "runs",
                f"Baseline's runs: {_aucs(training.baseline_aucs, comparison.margin)}; "
                f"candidate's: {_aucs(training.candidate_aucs, comparison.margin)}.",
            ),
            table(_noise(training, comparison)),
        )
    )


def _gaps(training: TrainingNoise, margin: float) -> List[Tuple[str, ...]]:
    """The spread between pairs of runs: of the baseline alone, where it has several, and across."""
    gaps = [abs(new - old) for old in training.baseline_aucs for new in training.candidate_aucs]
    beyond = sum(gap > margin for gap in gaps)
    across = Control(len(gaps), sum(gaps) / len(gaps), max(gaps), beyond)
    return [
        (name, f"{gap.pairs:,}", f"{gap.mean:.2g}", f"{gap.largest:.2g}", f"{gap.beyond_margin:,}")
        for name, gap in (
            ("control: baseline against baseline", training.control),
            ("candidate against baseline", across),
        )
        if gap is not None
    ]


def _noise(training: TrainingNoise, comparison: Comparison) -> List[Tuple[str, str]]:
    low, high = (signed(value, comparison.margin) for value in comparison.interval)
    rows = [
        ("baseline's runs", _aucs(training.baseline_aucs, comparison.margin)),
        ("candidate's runs", _aucs(training.candidate_aucs, comparison.margin)),
        ("standard deviation of the baseline's runs", _or_unknown(training.seed_sd[0])),
        ("standard deviation of the candidate's runs", _or_unknown(training.seed_sd[1])),
        ("standard error from the seeds", f"{training.standard_error_seeds:.2g}"),
        ("standard error from the rows", f"{training.standard_error_rows:.2g}"),
        ("degrees of freedom", f"{training.degrees_of_freedom:.1f}"),
        (f"{percent(comparison.confidence)} interval from both", f"{low} to {high}"),
        ("chance that equal pipelines pass with as much", f"{training.power:.0%}"),
    ]
    if training.runs_to_settle is not None:
        rows.append(("runs per side for a chance of 80%, about", f"{training.runs_to_settle:,}"))
    return rows


def _aucs(aucs: Tuple[float, ...], margin: float) -> str:
    return some_of((plain(auc, margin) for auc in aucs), most=10)


def _or_unknown(deviation: Optional[float]) -> str:
    return "unknown, one run" if deviation is None else f"{deviation:.2g}"
