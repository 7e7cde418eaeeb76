"""Several training runs a side: the baseline against itself, and the noise of training."""

from typing import List, Tuple

from parity import plot
from parity.report.sections.markup import drawing, paragraphs, table
from parity.report.words import percent, plain, signed
from parity.result import Comparison, TrainingNoise


def runs_section(found: Comparison) -> str:
    """The control row A against A' above the comparison, and where the uncertainty comes from."""
    training = found.training
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
                _gaps(training, found.margin),
                ("|difference in AUC|", "pairs", "mean", "largest", "beyond margin"),
            ),
            drawing(
                "Each run's AUC; the band is the margin around the baseline's mean",
                plot.runs(found),
                "runs",
                f"Baseline's runs: {_aucs(training.baseline_aucs, found.margin)}; "
                f"candidate's: {_aucs(training.candidate_aucs, found.margin)}.",
            ),
            table(_noise(training, found)),
        )
    )


def _gaps(training: TrainingNoise, margin: float) -> List[Tuple[str, ...]]:
    """How far pairs of runs lie apart: of the baseline alone, where it has several, and across."""
    gaps = [abs(new - old) for old in training.baseline_aucs for new in training.candidate_aucs]
    beyond = sum(gap > margin for gap in gaps)
    across = _gap_row(
        "candidate against baseline", len(gaps), sum(gaps) / len(gaps), max(gaps), beyond
    )
    if training.control is None:
        return [across]
    return [_gap_row("control: baseline against baseline", *training.control), across]


def _gap_row(name: str, pairs: int, mean: float, largest: float, beyond: int) -> Tuple[str, ...]:
    return name, f"{pairs:,}", f"{mean:.2g}", f"{largest:.2g}", f"{beyond:,}"


def _noise(training: TrainingNoise, found: Comparison) -> List[Tuple[str, str]]:
    """What the uncertainty is made of."""
    low, high = (signed(value, found.margin) for value in found.interval)
    rows = [
        ("baseline's runs", _aucs(training.baseline_aucs, found.margin)),
        ("candidate's runs", _aucs(training.candidate_aucs, found.margin)),
        ("standard deviation of the baseline's runs", _or_none(training.seed_sd[0])),
        ("standard deviation of the candidate's runs", _or_none(training.seed_sd[1])),
        ("standard error from the seeds", f"{training.standard_error_seeds:.2g}"),
        ("standard error from the rows", f"{training.standard_error_rows:.2g}"),
        ("degrees of freedom", f"{training.degrees_of_freedom:.1f}"),
        (f"{percent(found.confidence)} interval from both", f"{low} to {high}"),
        ("chance that equal pipelines pass with as much", f"{training.power:.0%}"),
    ]
    if training.runs_to_settle is not None:
        rows.append(("runs a side for a chance of 80%, about", f"{training.runs_to_settle:,}"))
    return rows


def _aucs(aucs: Tuple[float, ...], margin: float) -> str:
    shown = ", ".join(plain(auc, margin) for auc in aucs[:10])
    return shown if len(aucs) <= 10 else f"{shown}, and {len(aucs) - 10:,} more"


def _or_none(value: object) -> str:
    return "unknown, one run" if value is None else f"{value:.2g}"
