"""The manifests that docs/schedulers.md shows."""

import re

import yaml

from tests.support.require import ROOT

PAGE = ROOT / "docs" / "schedulers.md"


def manifest(kind):
    """The page's manifest of this kind, a dict of its own."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    (found,) = (each for each in map(yaml.safe_load, blocks) if each["kind"] == kind)
    return found
