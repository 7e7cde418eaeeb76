"""Griffe reads the code for the API reference without running it, and so meets our lazy packages.

Their names stand in the stub beside `__init__.py`, from which lazy_loader computes `__all__` when
the package is imported. Griffe merges stub and module, and is told here that the names are public.
"""

import griffe

_LOADER = "lazy_loader"


class LazyNames(griffe.Extension):
    """Has a lazy package export what its stub imports."""

    def on_package(self, *, pkg, **_):
        """Called for each package, with everything in it loaded."""
        for module in _modules(pkg):
            if _LOADER in module.members:
                imported = {name for name, member in module.members.items() if member.is_alias}
                module.exports = sorted(imported - {_LOADER})


def _modules(module):
    yield module
    for inner in module.modules.values():
        if not inner.is_alias:
            yield from _modules(inner)
