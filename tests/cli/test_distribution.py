"""The distribution's name: on PyPI `semisync` is a stranger's, to which nothing leads anyone."""

import configparser
import re
import shlex
import subprocess

import pytest

from semisync.common import distribution
from tests.support.require import ROOT

# An extra of it, or an install command with it as a requirement, whatever comes between.
STRANGERS = re.compile(
    r"(?<![\w/.-])semisync\[|install\b[^\n;&|#]*[ '\"]semisync(?=[ '\"`=<>~!)]|$)", re.M
)


def test_the_distribution_has_the_name_that_messages_give():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["metadata"]["name"] == distribution.NAME


def test_a_clone_is_installed_from_its_own_path():
    words = shlex.split(distribution.install_command("report,torch"))
    assert words == ["pip", "install", f"{ROOT}[report,torch]"]


def test_a_wheel_is_asked_by_its_own_name(monkeypatch, tmp_path):
    monkeypatch.setattr(distribution, "ROOT", tmp_path)
    assert distribution.install_command("report") == "pip install 'semisync-ctr[report]'"


@pytest.mark.parametrize(
    "text, is_one",
    [
        ("pip install semisync", True),
        ("pip install 'semisync[torch]'", True),
        ("uv pip install -q numpy semisync==0.1", True),
        ("the extra torch (`semisync[torch]`)", True),
        ("pip install 'semisync-ctr[torch]'", False),
        ("pip install '.[torch]' && semisync inspect", False),
        ("pip install /a/clone/of/semisync", False),
    ],
)
def test_an_install_of_the_strangers_is_noticed(text, is_one):
    assert bool(STRANGERS.search(text)) == is_one


def test_no_file_installs_the_strangers():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found = {}
    for name in listed.stdout.decode().splitlines():
        path = ROOT / name
        if path.is_file() and not path.samefile(__file__):
            text = path.read_bytes().decode("utf-8", "replace")
            found[name] = STRANGERS.findall(text)
    assert len(found) > 500
    assert {name: hits for name, hits in found.items() if hits} == {}
