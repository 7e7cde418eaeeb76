"""The benchmark of input runs, and every case reads the same rows."""

import subprocess

from tests.support.require import ROOT, environment


def test_every_case_reads_the_same_ids_and_has_a_row(interpreters):
    command = [str(interpreters / "python"), "-W", "ignore", "-m", "benchmarks.input"]
    done = subprocess.run(
        [*command, "--rows", "20000", "--repeats", "1", "--batch", "512"],
        cwd=str(ROOT),
        env=environment(TF_CPP_MIN_LOG_LEVEL="3"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for case in (
        "ours, Parquet |",
        "shuffled |",
        "ours, ORC |",
        "ours, text |",
        "to_pylist",
        "tf.data",
    ):
        assert done.stdout.count("| " + case if case != "shuffled |" else case) == 2, done.stdout
    assert done.stdout.count("MB/s of CPU time.") == 2
