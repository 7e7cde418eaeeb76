"""A figure by matplotlib, without a screen."""

import contextlib
import io

from semisync.common.files import write_bytes


@contextlib.contextmanager
def picture(path, *shape, **more):
    """Yields the axes of `plt.subplots(*shape, **more)`, and writes them to `path` after the block.

    Its ending, such as .svg, decides the format; text stays text, and a file says no date.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kind = path.rpartition(".")[2]
    # A fixed salt gives the same ids, so that equal figures are equal files.
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "semisync"}):
        figure, axes = plt.subplots(*shape, layout="constrained", **more)
        yield axes
        for one in figure.axes:
            one.spines[["top", "right"]].set_visible(False)
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, metadata={"Date": None} if kind == "svg" else None)
        plt.close(figure)
    write_bytes(path, drawn.getvalue())
