"""Blocks as Markdown; pictures are SVG files in a folder beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from aqmlab._util.files import write_text
from aqmlab._util.markup import markdown, markdown_table, markdown_text
from aqmlab.document.blocks import Block, Code, Facts, Heading, Items, Pictures, Table, Text, Title

__all__ = ["write"]


def write(blocks: Iterable[Block], path: Path) -> None:
    """Writes the pictures and the text that shows them."""
    folder = path.with_name(f"{path.stem}_files")
    paragraphs = [one for block in blocks for one in _paragraphs(block, folder)]
    write_text(path, "\n\n".join(filter(None, paragraphs)) + "\n")


def _paragraphs(block: Block, folder: Path) -> Iterator[str]:
    """The paragraphs of a block."""
    if isinstance(block, Title):
        yield f"# {markdown_text(block.text)}"
        yield markdown_text(block.beside)
    elif isinstance(block, Heading):
        yield f"{'#' * block.level} {markdown_text(block.text)}"
    elif isinstance(block, Text):
        label = f"**{markdown_text(block.label)}.** " if block.label else ""
        yield label + markdown_text(block.words)
    elif isinstance(block, Facts):
        yield markdown(["what", "value"], [[name, markdown_text(it)] for name, it in block.pairs])
    elif isinstance(block, Items):
        yield "\n".join(f"- {markdown_text(one.said)}" for one in block.items)
    elif isinstance(block, Table):
        yield f"*{markdown_text(block.model.caption)}*" if block.model.title else ""
        yield markdown_table(block.model)
    elif isinstance(block, Pictures):
        for one in block.pictures:
            file = folder / f"{one.name}.svg"
            write_text(file, one.draw("light"))
            caption = markdown_text(one.caption)
            yield f"![{caption}]({quote(folder.name)}/{file.name})"
            yield "" if one.has_title else f"*{caption}*"
    elif isinstance(block, Code):
        fence = max(re.findall(r"`{3,}", block.text), key=len, default="``") + "`"
        yield f"{fence}toml\n{block.text.rstrip()}\n{fence}"
