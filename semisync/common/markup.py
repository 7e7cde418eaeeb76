"""Text in a page of HTML: the one place that puts it there."""

import html

from semisync.common.terminal import shown


def in_html(text):
    """Text, or the value of an attribute, that is shown as it is written.

    What is not printable, such as a character that turns the direction of writing, is shown as in a
    literal.
    """
    return html.escape(shown(" ".join(str(text).split("\n"))))
