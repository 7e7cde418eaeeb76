"""The report's sections: one file each, a function from what was found to HTML.

The first screen is `verdict`, for a reader who knows no statistics; what follows is for those who
ask why. A section with nothing to say returns "" and is left out, title and all; a new one is a
file and a line in SECTIONS.
"""

from typing import Callable, Tuple

from parity.report.sections.calibration import calibration_section
from parity.report.sections.days import days_section
from parity.report.sections.diagnosis import diagnosis_section
from parity.report.sections.difference import difference_section
from parity.report.sections.limits import limits_section
from parity.report.sections.runs import runs_section
from parity.report.sections.scores import scores_section
from parity.report.sections.sides import sides_section
from parity.report.sections.slices import slices_section
from parity.report.sections.worst import worst_section
from parity.result import Comparison

Section = Callable[[Comparison], str]

SECTIONS: Tuple[Tuple[str, Section], ...] = (
    ("Why they may differ", diagnosis_section),
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
