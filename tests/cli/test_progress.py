"""What long work says while it runs: one line on a terminal, few plain lines elsewhere."""

import io

import pytest

from semisync.common.progress import ByteProgress, Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_line_is_rewritten_on_a_terminal_and_stays_where_it_ends():
    stream = Terminal()
    progress = Progress(stream)
    for text in ("half", "half", "most"):
        progress.show(text)
    progress.end("done")
    progress.note("slow")
    assert stream.getvalue() == "\r\033[Khalf\r\033[Kmost\r\033[Kdone\n\r\033[Knote: slow\n"


def test_elsewhere_lines_are_plain_and_none_comes_twice_in_a_row():
    stream = io.StringIO()
    progress = Progress(stream)
    for text in ("half", "half", "most"):
        progress.show(text)
    progress.end("done")
    progress.close()
    assert stream.getvalue() == "half\nmost\ndone\n"


@pytest.mark.parametrize(("kind", "lines"), [(Terminal, 28), (io.StringIO, 3)])
def test_bytes_are_told_once_in_a_while_and_only_where_the_work_takes_long(kind, lines):
    stream, clock = kind(), Clock()
    with ByteProgress(stream, clock) as report:
        for second in range(30):
            clock.now = second
            report(second * 10**6, 10**9)
            assert stream.getvalue() or second < 2
    assert stream.getvalue().count(" of 1,000 MB, 1 MB/s") == lines
    assert stream.getvalue().endswith("\n")


def test_quick_work_says_nothing():
    stream = Terminal()
    with ByteProgress(stream, Clock()) as report:
        report(5, 5)
    assert stream.getvalue() == ""
