"""What the experiment refuses before it trains."""

import pytest

from benchmarks import auc_evidence


@pytest.mark.parametrize("modes", [["semi-sync"], ["sync", "semi-sync"], ["async", "semi-sync"]])
def test_a_frontier_without_its_ends_is_refused_at_once(modes, monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["", "--modes", *modes, "--frontier", "f.svg", "--data", __file__]
    )
    with pytest.raises(SystemExit):
        auc_evidence.arguments()
    assert "--frontier compares with sync, and paces with async" in capsys.readouterr().err
