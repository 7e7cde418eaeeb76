"""Texts that a stranger puts where a graph has a name or a string."""

MARKER = "PWNED"  # a file in the current folder, once one of the texts has run
_CODE = f"__import__('builtins').open('{MARKER}', 'w')"

# The first ones cover each way out of a literal, a docstring, a template and a line.
TEXTS = [
    f'", {_CODE}, "',
    f"', {_CODE}, '",
    f'a"""\n{_CODE}\n"""b',
    "it's [\\",
    '"\\',
    "line\nfeed\r\x00\x0b\u2028end",
    f"{{{_CODE}}}",
    "{0.__class__} {title} %s {",
    f'"""+str({_CODE})+"""',
    f"\\', {_CODE})#",
    "self.w",
    "ｓｅｌｆ",
    "\u202egnp.elif",
    "../../up",
    "x" * 10_000,
    b"\xff\xfe\x00",
]


def as_bytes(text):
    """What stands in the file."""
    return text if isinstance(text, bytes) else text.encode()


def titled(text):
    """A short name for a test's parameter."""
    return ascii(text)[:24]
