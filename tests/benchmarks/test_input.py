"""The benchmark of input runs, and every case reads the same rows."""

import pytest

from tests.support.programs import output_of


@pytest.mark.long
def test_every_case_reads_the_same_ids_and_has_a_row(interpreters):
    command = [interpreters / "python", "-W", "ignore", "-m", "benchmarks.input"]
    command += ["--rows", "20000", "--repeats", "1", "--batch", "512"]
    printed = output_of(*command, TF_CPP_MIN_LOG_LEVEL="3")
    for case in (
        "ours, Parquet |",
        "shuffled |",
        "ours, ORC |",
        "ours, text |",
        "to_pylist",
        "tf.data",
    ):
        assert printed.count("| " + case if case != "shuffled |" else case) == 2, printed
    assert printed.count("MB/s of CPU time.") == 2
