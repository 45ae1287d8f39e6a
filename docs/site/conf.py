"""How Sphinx builds the site; `build.py` calls it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import aqmlab
from bs4 import BeautifulSoup

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "aqmlab"
author = "aqmlab developers"
release = aqmlab.__version__
html_title = f"aqmlab {release}"
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
root_doc = "index"
exclude_patterns = ["files"]  # what is linked, to be downloaded

# Markdown: anchors as forges make them.
myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
# Options and quoted values stay what a reader types: no dashes for hyphens, no curled quotes.
smartquotes = False

# Notebooks are run, so that what they show is what this version gives; an error is one here too.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_merge_streams = True

# Python: what the docstrings say, with the types of the signatures.
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autoclass_content = "both"
autodoc_default_options = {"members": True}
add_module_names = False
default_role = "code"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
python_display_short_literal_types = True

html_context = {"default_mode": "auto"}  # light or dark as the reader has it
html_theme = "pydata_sphinx_theme"
html_search_scorer = str(Path(__file__).parent / "static/scorer.js")
# The table of the leaderboard is sorted as in the page that `aqmlab evaluate all` writes.
html_static_path = ["static", "../../python/aqmlab/cards/templates/sort.js"]
html_js_files = ["sort.js"]
html_css_files = ["site.css"]
# It stands alone, and its output needs the place.
html_sidebars: dict[str, list[str]] = {"tutorial": []}
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
# The pages that a search finds are read from its index, not fetched: it works from files too.
html_show_search_summary = False
html_theme_options = {
    "logo": {"text": "aqmlab"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "header_links_before_dropdown": 6,
}
copyright = "aqmlab developers, Apache-2.0 or MIT"  # noqa: A001 - Sphinx calls it so
copybutton_exclude = ".linenos, .gp, .go"


def _keep_colons(
    _app: Sphinx, what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Lets a colon in the docstring of an attribute be a colon.

    Napoleon takes what stands before it for a type; of an empty type it says nothing.
    """
    if what in {"attribute", "data", "property"} and lines and ":" in lines[0]:
        lines[0] = f": {lines[0]}"


def _name_toggles(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object
) -> None:
    """Gives what unfolds a part of the navigation a name that a screen reader can say."""
    made = context["generate_toctree_html"]

    def named(*args: object, **settings: object) -> object:
        tree = made(*args, **settings)
        for toggle in tree.select("summary") if isinstance(tree, BeautifulSoup) else ():
            if (link := toggle.find_previous("a")) is not None:
                toggle["aria-label"] = f"Pages of {link.get_text(strip=True)}"
        return tree

    context["generate_toctree_html"] = named


def _without_source(app: Sphinx) -> list[tuple[str, dict[str, Any], str]]:
    """Forgets modules that have no source to show, so that the list of sources has no dead link."""
    modules = getattr(app.env, "_viewcode_modules", {})
    for name in [name for name, entry in modules.items() if not entry]:
        del modules[name]
    return []


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("html-collect-pages", _without_source, priority=100)
    app.connect("autodoc-process-docstring", _keep_colons, priority=400)
    app.connect("html-page-context", _name_toggles, priority=900)
