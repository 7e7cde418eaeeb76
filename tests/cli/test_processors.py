"""Processors are those that a process is bound to, within its container's quota."""

import os

import pytest

from migrate.launcher import usable
from semisync import cli

# Of control groups: what /proc/self/cgroup says, and the files of the folders above it.
GROUPS = {
    "2, no quota": ("0::/\n", {"cpu.max": "max 100000\n"}, 3),
    "2, a half": ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
    "2, two": ("0::/job\n", {"job/cpu.max": "200000 100000\n"}, 2),
    "2, of what is above": (
        "0::/pod/job\n",
        {"pod/job/cpu.max": "max 100000\n", "pod/cpu.max": "250000 100000\n"},
        2,
    ),
    "1": (
        "5:memory:/x\n4:cpu,cpuacct:/x\n",
        {
            "cpu,cpuacct/x/cpu.cfs_quota_us": "150000\n",
            "cpu,cpuacct/x/cpu.cfs_period_us": "100000\n",
        },
        1,
    ),
    "1, no quota": (
        "4:cpu:/\n",
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
        3,
    ),
    "damaged": ("0::/\n", {"cpu.max": "\n"}, 3),
    "none": (None, {}, 3),
}


@pytest.mark.parametrize("name", GROUPS)
def test_a_quota_counts(name, tmp_path, monkeypatch):
    said, files, expected = GROUPS[name]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    if said is not None:
        (tmp_path / "proc" / "self").mkdir(parents=True)
        (tmp_path / "proc" / "self" / "cgroup").write_text(said)
    for path, text in files.items():
        place = tmp_path / "sys" / "fs" / "cgroup" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    assert usable(str(tmp_path)) == expected


def test_no_more_than_the_process_is_bound_to():
    assert 1 <= usable() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("words", "given", "then"),
    [
        (["verify", "no.ckpt", "none"], None, "PASSIVE"),
        (["verify", "no.ckpt", "none"], "ACTIVE", "ACTIVE"),
        (["status", "--zookeeper", "", "--job", "j"], None, None),
        (["launch", "--zookeeper", "", "--job", "j"], None, None),
    ],
)
def test_a_command_that_computes_in_torch_has_threads_sleep_unless_told_otherwise(
    words, given, then, monkeypatch, capsys
):
    monkeypatch.setenv("OMP_WAIT_POLICY", given or "")
    if given is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    assert cli.main(words) != 0
    assert os.environ.get("OMP_WAIT_POLICY") == then
