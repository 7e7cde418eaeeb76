"""The demo's reports while it trains: a line per mode, and the table of all modes."""

import pathlib
from typing import Any, Dict, Optional, Sequence, TextIO

from semisync.common import json_text, progress
from semisync.demo.finding import Difference


class Progress(progress.Progress):
    """The common display, with the demo's lines."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._reported: Dict[str, int] = {}  # mode -> the last quarter shown

    def training(self, out: pathlib.Path, modes: Sequence[str]) -> None:
        """Shows the mode in training; off a terminal, only at each quarter."""
        for mode in modes:
            path = out / mode / "progress.json"
            if not path.exists():
                return
            now = json_text.loads(path.read_text())
            quarters = int(now["share"] * 4)
            if self._reported.get(mode, -1) > 3:
                continue
            text = f"  {mode:<12} {now['share']:4.0%}  {now['batches_per_second']:5.1f} batches/s"
            if quarters > 3:
                self.end(text)
            elif self.live or quarters > self._reported.get(mode, -1):
                self.show(text)
            self._reported[mode] = quarters

    def table(self, modes: Dict[str, Dict[str, Any]], bayes_auc: Optional[float]) -> None:
        """The modes side by side."""
        base = modes["async"]["batches_per_second"]
        head = f"{'mode':<12} {'batches/s':>9} {'x async':>8} {'staleness':>10} {'AUC':>8}"
        self.end(f"{head}   minus sync, 95 % interval")
        for name, mode in modes.items():
            pace = mode["batches_per_second"]
            minus = mode.get("minus_sync")
            self.end(
                f"{name:<12} {pace:9.1f} {pace / base if base else 0:8.2f} "
                f"{mode['staleness']['mean']:10.2f} {mode['auc']:8.4f}"
                + (f"   {Difference(**minus)}" if minus else "")
            )
        if bayes_auc is not None:
            self.end(f"{'optimum':<12} {'':9} {'':8} {'':10} {bayes_auc:8.4f}")
