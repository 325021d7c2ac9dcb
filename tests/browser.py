"""The browser of tests: the distribution's Chromium, found on the path and never downloaded."""

import os
import shutil

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
REQUIRED = bool(os.environ.get("GATAS_REQUIRE_BROWSER"))
"""Whether tests that need a browser fail where there is none, instead of being skipped."""


def left_out() -> str:
    """Return one line on what `make test` leaves out here."""
    if CHROMIUM is None:
        return "Left out: the explorer's tests in a browser, as there is no chromium on the path (apt-get install chromium)."
    return f"Nothing is left out; the explorer is tested in {CHROMIUM}."
