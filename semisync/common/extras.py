"""Packages of an extra, which are imported where they are used: one sentence where one is missing.

Around the import stands `with extra("report", "to draw the figures"):`.
"""

import contextlib
from typing import Iterator, Optional

from semisync.common.distribution import install_command
from semisync.common.errors import MissingExtra


@contextlib.contextmanager
def extra(names: str, purpose: str) -> Iterator[None]:
    """Within it, a package that is not installed raises MissingExtra, which names the command.

    Args:
        names: of the extras, such as "report,torch".
        purpose: the package's purpose, "to ...".
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(not_installed(error.name, names, purpose)) from error


def not_installed(package: Optional[str], names: str, purpose: str = "") -> str:
    """The sentence that says so."""
    named = f"{package!r}, needed {purpose}," if purpose else repr(package)
    return f"the Python package {named} is not installed; run: {install_command(names)}"
