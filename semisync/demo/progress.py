"""What the demo says while it works: one line that changes on a terminal, plain lines elsewhere."""

import json
import pathlib
from typing import Any, Dict, Optional, Sequence, TextIO


class Progress:
    """Writes to `stream`; the line in progress is rewritten only where somebody sees it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._shown = ""
        self._reported: Dict[str, int] = {}

    def show(self, text: str) -> None:
        """Shows what is going on, in place of what was."""
        if text == self._shown:
            return
        if self._live:
            self._stream.write("\r\033[K" + text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()
        self._shown = text

    def end(self, text: str) -> None:
        """Leaves a line for good."""
        self._stream.write(("\r\033[K" if self._live else "") + text + "\n")
        self._stream.flush()
        self._shown = ""

    def note(self, text: str) -> None:
        """A remark of a reader."""
        self.end("note: " + text)

    def training(self, out: pathlib.Path, modes: Sequence[str]) -> None:
        """Shows the mode that is being trained, at each quarter where there is no terminal."""
        for mode in modes:
            path = out / mode / "progress.json"
            if not path.exists():
                return
            now = json.loads(path.read_text())
            quarters = int(now["share"] * 4)
            if self._reported.get(mode, -1) > 3:
                continue
            text = f"  {mode:<12} {now['share']:4.0%}  {now['batches_per_second']:5.1f} batches/s"
            if quarters > 3:
                self.end(text)
            elif self._live or quarters > self._reported.get(mode, -1):
                self.show(text)
            self._reported[mode] = quarters

    def table(self, modes: Dict[str, Dict[str, Any]], bayes_auc: Optional[float]) -> None:
        """The three modes side by side."""
        base = modes["async"]["batches_per_second"]
        self.end(f"{'mode':<12} {'batches/s':>9} {'x async':>8} {'staleness':>10} {'AUC':>8}")
        for name, mode in modes.items():
            pace = mode["batches_per_second"]
            self.end(
                f"{name:<12} {pace:9.1f} {pace / base if base else 0:8.2f} "
                f"{mode['staleness']['mean']:10.2f} {mode['auc']:8.4f}"
            )
        if bayes_auc is not None:
            self.end(f"{'optimum':<12} {'':9} {'':8} {'':10} {bayes_auc:8.4f}")
