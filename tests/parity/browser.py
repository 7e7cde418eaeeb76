"""A page in a real browser, which is asked by a script in it."""

import re
import shutil
import subprocess

from tests.support.require import skip_without


def answer(folder, page, script, *flags):
    """What `script`, an expression, is worth once the page is drawn.

    Args:
        folder: for the page and the browser's profile.
        page: an HTML document that ends with </html>.
        flags: of Chromium.
    """
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        skip_without("chromium", "no chromium on PATH")
    probe = folder / "probe.html"
    asked = f"<script>document.title = String({script});</script></html>"
    probe.write_text(page.replace("</html>", asked), encoding="utf-8")
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-sync"]
    command += ["--disable-component-update", f"--user-data-dir={folder / 'profile'}"]
    command += [*flags, "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return re.search("<title>(.*?)</title>", done.stdout).group(1)
