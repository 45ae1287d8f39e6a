"""Libraries that draw: importing this is an error of one line where one is not installed."""

from __future__ import annotations

from aqmlab._util.extras import undrawable
from aqmlab.errors import AqmlabError

if _why := undrawable():
    raise AqmlabError(_why)
