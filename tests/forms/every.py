"""All forms, in the order of the page."""

from tests.forms import batch_norms, layers, lookups, optimizers, steps
from tests.forms.form import FORMS

MODULES = (batch_norms, lookups, layers, optimizers, steps)

__all__ = ["FORMS", "MODULES"]
