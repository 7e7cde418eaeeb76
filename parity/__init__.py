"""Is the candidate model as good as the baseline? Exact AUC and a verdict with its uncertainty.

    parity.auc(labels, scores)                      one model's AUC, exact, ties counted half
    parity.compare(labels, baseline, candidate)     two models on the same rows -> Comparison
    parity.compare(table, label="y", baseline="old", candidate="new")      of any library
    parity.require(comparison, {"pcoc": 0.01})      metrics that must be equivalent beside AUC
    parity.diagnose(comparison, ...)                why they differ: suspects with their evidence
    parity.write_report(comparison, directory)      report.html for people, others for a CI
    parity.plot.interval(comparison), .roc, .days   its figures, one by one

Importing the package needs numpy alone; `parity.io.readers` needs pyarrow, figures and reports need
matplotlib.
"""

from parity import plot, spark
from parity.diagnosis.diagnose import diagnose
from parity.diagnosis.facts import Facts
from parity.gates import require
from parity.report.html import notebook_html, report_section, stylesheet, write_report
from parity.result import Comparison, Side, Suspect
from parity.runs import compare_runs
from parity.stats.equivalence import Verdict
from parity.stats.intervals import at_confidence
from parity.stats.roc import auc
from parity.stats.strata import Days, Part, compare_days, compare_slices
from parity.stats.tf1_auc import tf1_compat_auc
from parity.stats.worst_rows import worst_rows
from parity.tables import compare

Comparison._repr_html_ = notebook_html

__all__ = [
    "Comparison",
    "Days",
    "Facts",
    "Part",
    "Side",
    "Suspect",
    "Verdict",
    "at_confidence",
    "auc",
    "compare",
    "compare_days",
    "compare_runs",
    "compare_slices",
    "diagnose",
    "plot",
    "report_section",
    "require",
    "spark",
    "stylesheet",
    "tf1_compat_auc",
    "worst_rows",
    "write_report",
]
