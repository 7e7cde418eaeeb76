# What __init__.py imports when it is first used; type checkers and the API reference read it too.
from .reporter import StatusHook as StatusHook
from .server import Page as Page
