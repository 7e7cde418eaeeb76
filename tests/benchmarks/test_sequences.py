"""The benchmark of sequences runs, and its sides are asked the same."""

import sys

import pytest
import torch

from benchmarks.sequences_parts import data, speed
from tests.support.programs import output_of

LINES = "7 1 2 3 4 5\n2 3 1 4 2 6 5\n9 6 5 1\n"


@pytest.fixture
def folder(tmp_path):
    for name in data.NAMES:
        (tmp_path / (name + ".txt")).write_text(LINES * 4)
    return tmp_path


def test_the_last_items_are_held_back_and_the_first_of_them_is_asked_for(folder):
    histories = data.Histories(str(folder), "LastFM")
    users = [0, 1, 2]
    trained = histories.packed(users, data.VALIDATION, 3)
    assert trained.items.tolist() == [0, 1, 2, 0, 3, 1, 5]
    assert trained.offsets.tolist() == [0, 3, 6, 7]
    assert histories.asked(users, data.VALIDATION).tolist() == [3, 5, 4]
    assert histories.packed(users, data.TEST, 3).items.tolist() == [1, 2, 3, 3, 1, 5, 5, 4]
    assert histories.asked(users, data.TEST).tolist() == [4, 4, 0]
    batches = list(histories.batches(data.TEST, 3, 5))
    assert torch.cat([packed.items for _, packed in batches]).shape == (32,)
    assert max(len(packed.items) for _, packed in batches) <= 7


def test_what_is_padded_holds_the_same_items(folder):
    packed = data.Histories(str(folder), "LastFM").packed([0, 1, 2], data.TEST, 50)
    padded, places = speed.lengthened(packed, 9)
    assert padded.lengths.tolist() == [9, 9, 9]
    assert torch.equal(padded.items[places], packed.items)


@pytest.mark.long
def test_it_prints_every_table(folder):
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.sequences", "--data", str(folder)]
    command += ["--sets", "LastFM", "--seeds", "2", "--epochs", "1", "--repeats", "1"]
    printed = output_of(*command)
    assert printed.count("| LastFM |") == 2 + 1 + 4 + 2
    assert printed.count(" ± ") == 16
    assert "There is no peer" in printed
