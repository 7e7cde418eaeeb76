"""The report's sections: functions from a comparison to HTML, in the order of the page.

    verdict.py      the first screen; why the models may differ; the verdict's limits; provenance
    models.py       both models' figures, calibration, the scores row by row
    difference.py   the difference in AUC, and the training runs that it is judged against
    parts.py        days, slices, and the rows that pull hardest

The first screen is for a reader who knows no statistics; what follows is for those who ask why. A
section with nothing to say returns "" and is left out, title and all; a new one is a function and a
line in SECTIONS.
"""

from typing import Callable, Tuple

from parity.report.sections.difference import difference_section, runs_section
from parity.report.sections.models import calibration_section, scores_section, sides_section
from parity.report.sections.parts import days_section, slices_section, worst_section
from parity.report.sections.verdict import limits_section, suspects_section
from parity.result import Comparison

Section = Callable[[Comparison], str]

SECTIONS: Tuple[Tuple[str, Section], ...] = (
    ("Why they may differ", suspects_section),
    ("How far this reaches", limits_section),
    ("Training runs, and the control", runs_section),
    ("Both models", sides_section),
    ("The difference in AUC", difference_section),
    ("Day by day", days_section),
    ("Slices", slices_section),
    ("Calibration", calibration_section),
    ("Row by row", scores_section),
    ("Rows that pull hardest", worst_section),
)
