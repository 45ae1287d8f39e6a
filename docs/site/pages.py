"""The pages of the documentation site, made from the repository's Markdown.

``docs/*.md`` are plain Markdown that a forge shows. The site needs a little more, and gets
it here, in a copy:

- links to files outside ``docs`` become downloads, links to folders lead to a list of their pages;
- a page that lists pages (table rows or list items that begin with a link) is their parent in the
  navigation: an index page says once what belongs to it, and how it is called;
- ``scenario.md`` is split by table, and links to its headings follow;
- pages about a part of the Python package or about the C header end with what their docstrings and
  comments say.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import c_header

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""
INDEXES = (
    "index.md",
    "start.md",
    "how-to/index.md",
    "how-to/cookbook.md",
    "labs/index.md",
    "labs/worksheets/index.md",
    "traffic/index.md",
    "congestion-controls/index.md",
    "reference.md",
    "explanation.md",
    "not-reproduced/index.md",
    "project.md",
)
"""Pages whose lists of links are the navigation."""
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "scenarios/README.md": "scenarios.md",
    "GOVERNANCE.md": "governance.md",
    "records/dependencies.md": "dependencies.md",
    "records/live-comparison.md": "live-comparison.md",
    "records/newcomer.md": "newcomer.md",
    "records/card-stranger.md": "card-stranger.md",
    "records/peers-fidelity.md": "peers-fidelity.md",
}
"""Pages outside ``docs``, and the pages of the site that they are."""
SPLIT = "scenario.md"
"""The page that is split by table."""
PLAYGROUND = ROOT / "site" / "playground"
"""The playground, where it has been built."""
API = "python.md"
"""The page below which the docstrings are shown."""
API_PAGES = (
    "functions",
    "scenarios",
    "runs",
    "differences",
    "distributions",
    "statistics",
    "sweeps",
    "figures",
    "errors",
)
"""Its pages, in ``docs/site/python``, in their order."""


def _docstrings(name: str) -> str:
    """What a file in ``docs/site/python`` takes from docstrings, as a section of a page."""
    text = (ROOT / "docs" / "site" / "python" / f"{name}.rst").read_text()
    return f"## Docstrings\n\n```{{eval-rst}}\n{text}```\n"


REFERENCES: Mapping[str, Callable[[], str]] = {
    "gym.md": lambda: _docstrings("gym"),
    "plug-ins.md": lambda: _docstrings("plug-ins"),
    "c-interface.md": c_header.reference,
}
"""Pages with a start by hand, and what follows it on the site."""

_PLACE = "<!-- the playground -->"
_FRAME = """```{raw} html
<p><a href="playground/index.html">The playground on a page of its own</a></p>
<iframe src="playground/index.html" title="The playground" loading="lazy"
  style="width: 100%; height: 60rem; border: 1px solid #8888; border-radius: 8px"></iframe>
```"""
"""Where a page shows the playground, and what stands there."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_LISTED = re.compile(r"^(?:\| |- )\[([^\]]*)\]\(([^)\s#]+\.(?:md|ipynb))\)", re.MULTILINE)
_EVERY = re.MULTILINE | re.DOTALL
_FENCE = re.compile(r"(^```.*?^```$)", _EVERY)


class Site:
    """The sources of the site on their way from the repository to a folder."""

    def __init__(self, target: Path) -> None:
        """Plans the pages.

        Args:
            target: the folder; what is there and no longer wanted goes.
        """
        self._target = target
        self._written: set[Path] = set()
        docs = ROOT / "docs"
        sources = [*docs.rglob("*.md"), *docs.rglob("*.ipynb")]
        self._pages = {
            path.relative_to(ROOT).as_posix(): path.relative_to(docs).as_posix()
            for path in sorted(sources)
            if docs / "site" not in path.parents
        } | {name: page for name, page in OUTSIDE.items() if page != "index.md"}
        """Paths in the repository, and of the site's pages that are made from them."""
        self._parts = dict(_parts((docs / SPLIT).read_text()))

    def make(self) -> None:
        """Writes every page and file."""
        for source, page in self._pages.items():
            if page.endswith(".ipynb"):
                self._copy(ROOT / source, page)
                continue
            text = (ROOT / source).read_text()
            if page == SPLIT:
                self._make_parts(source)
                text = text[: _first_part(text)]
            text = self._linked(text, source, page)
            if PLAYGROUND.exists():
                text = text.replace(_PLACE, _FRAME)
            if page in REFERENCES:
                text += f"\n{REFERENCES[page]()}"
            listed = _LISTED.findall(text) if page in INDEXES else []
            children = [f"{title} <{name}>" for title, name in listed]
            if page == SPLIT:
                children = [f"{SPLIT.removesuffix('.md')}/{name}.md" for name in self._parts]
            if page == API:
                children = [f"{API.removesuffix('.md')}/{name}" for name in API_PAGES]
            self._write(page, text + _toctree(children))
        for folder in self._folders():
            self._write(f"{folder}/index.md", self._folder_page(folder))
        for name in API_PAGES:
            self._copy(ROOT / "docs" / "site" / "python" / f"{name}.rst", f"python/{name}.rst")
        self._remove_others()

    def _folders(self) -> list[str]:
        """Folders of ``docs`` with pages and no index of their own."""
        pages = [page for page in self._pages.values() if page.endswith(".md")]
        found = {posixpath.dirname(page) for page in pages} - {""}
        return sorted(name for name in found if f"{name}/index.md" not in self._pages.values())

    def _folder_page(self, folder: str) -> str:
        """A list of the pages of a folder with their first sentences."""
        lines = [f"# {folder.replace('-', ' ').capitalize()}", ""]
        pages = [page for page in self._pages.values() if posixpath.dirname(page) == folder]
        for page in pages:
            text = (ROOT / "docs" / page).read_text()
            title, rest = re.split(r"\n\n", text.removeprefix("# "), maxsplit=1)
            first = re.match(r"([A-Z`].*?[.:])(?:\s|$)", rest, re.DOTALL)
            says = f": {' '.join(first[1].rstrip(':.').split())}." if first else ""
            lines.append(f"- [{title}]({posixpath.basename(page)}){says}")
        names = [posixpath.basename(page) for page in pages]
        return "\n".join(lines) + "\n" + _toctree(names)

    def _make_parts(self, source: str) -> None:
        """Writes the pages of the tables of the scenario file."""
        for name, text in self._parts.items():
            page = f"{SPLIT.removesuffix('.md')}/{name}.md"
            title, introduction = _TITLES.get(name, (f"`{name}`", ""))
            linked = self._linked(text, source, page)
            self._write(page, f"# {title}\n\n{introduction}{linked}")

    def _linked(self, text: str, source: str, page: str) -> str:
        """The text of a page of the site, with links that hold there."""

        def link(found: re.Match[str]) -> str:
            return f"]({self._address(found[1], source, page)})"

        # Blocks of code stay unchanged.
        parts = _FENCE.split(text)
        return "".join(
            part if number % 2 else _LINK.sub(link, part) for number, part in enumerate(parts)
        )

    def _address(self, link: str, source: str, page: str) -> str:
        """Where a link of a page of the repository leads on the site."""
        if re.match(r"[a-z]+:", link):
            return link
        path, _, anchor = link.partition("#")
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), path or "."))
        if not path:
            meant = source
        where = ROOT / meant
        if meant in OUTSIDE:
            found = OUTSIDE[meant]
        elif meant in self._pages:
            found = self._pages[meant]
            if found == SPLIT and anchor:
                found = self._part_of(anchor)
        elif where.is_dir() and meant.startswith("docs/"):
            found = f"{meant.removeprefix('docs/')}/index.md"
        elif where.is_dir():
            found = self._pages[f"{meant.split('/')[0]}/README.md"]
        else:
            found = meant.removeprefix("docs/") if meant.startswith("docs/") else f"files/{meant}"
            self._copy(where, found)
        if found == page and anchor:
            return f"#{anchor}"
        relative = posixpath.relpath(found, posixpath.dirname(page) or ".")
        if found.startswith("files/"):
            return f"path:{relative}"  # a download, whatever its suffix
        return f"{relative}#{anchor}" if anchor else relative

    def _part_of(self, anchor: str) -> str:
        """The page on which a heading of the split page stands."""
        for name, text in self._parts.items():
            if anchor in map(slug, re.findall(r"^#+ (.*)$", text, re.MULTILINE)):
                return f"{SPLIT.removesuffix('.md')}/{name}.md"
        return SPLIT

    def _write(self, page: str, text: str) -> None:
        """A page; a file that holds the same already stays, so that little is built anew."""
        path = self._target / page
        self._written.add(path)
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def _copy(self, source: Path, name: str) -> None:
        path = self._target / name
        self._written.add(path)
        if not path.exists() or path.read_bytes() != source.read_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, path)

    def _remove_others(self) -> None:
        for folder, _, names in os.walk(self._target):
            for name in names:
                path = Path(folder) / name
                if path not in self._written:
                    path.unlink()


def slug(heading: str) -> str:
    """The anchor of a heading, as forges and the site make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


_TITLES = {
    "measure": ("Measurement", ""),
    "topology": ("Topology", ""),
    "reordering": ("Reordering", ""),
    "rate_changes": ("Changes of the rate", ""),
    "when": ("Changes at a phase", ""),
    "discipline": (
        "Queue disciplines",
        "What each does is explained on its [page](../disciplines/index.md).\n\n",
    ),
    "traffic": (
        "Traffic",
        "What each kind does is explained on its [page](../traffic/index.md).\n\n",
    ),
    "rtt": ("Round-trip times", ""),
    "request": ("Sizes", ""),
    "tcp": ("TCP", ""),
}
"""Titles of the parts by their tables, and what comes first; other tables have their own names."""


def _first_part(text: str) -> int:
    """Where the first table of the scenario file begins."""
    found = re.search(r"^## `", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"docs/{SPLIT}: has no heading that names a table")
    return found.start()


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The tables of the scenario file, by the first key of their paths."""
    parts: dict[str, str] = {}
    for section in re.findall(r"^## .*?(?=^## |\Z)", text[_first_part(text) :], _EVERY):
        found = re.match(r"## `\[*(\w+)", section)
        if found is None:
            raise SystemExit(f"docs/{SPLIT}: names no table: {section.splitlines()[0]}")
        parts[found[1]] = parts.get(found[1], "") + section
    yield from parts.items()


def _toctree(pages: list[str]) -> str:
    """The children of a page in the navigation; nothing is shown."""
    if not pages:
        return ""
    entries = "\n".join(dict.fromkeys(pages))
    return f"\n```{{toctree}}\n:hidden:\n:maxdepth: 2\n\n{entries}\n```\n"
