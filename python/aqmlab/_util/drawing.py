"""Libraries that draw: importing this is an error of one line where one is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab._util.extras import undrawable
from aqmlab.errors import AqmlabError

if TYPE_CHECKING:
    import jinja2

__all__ = ["templates"]

if _why := undrawable():
    raise AqmlabError(_why)


def templates(*packages: str) -> jinja2.Environment:
    """The templates of some packages; a name that one of them is not given is an error."""
    import jinja2  # figures do without it

    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(one) for one in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
