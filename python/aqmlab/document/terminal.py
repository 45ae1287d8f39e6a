"""Blocks on a terminal, 80 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from aqmlab._util.table import ON_PAGES, TableModel, strong
from aqmlab._util.words import wrapped
from aqmlab.document.blocks import Block, Heading, Items, Table, Text, Title

__all__ = ["parts"]


def parts(blocks: Iterable[Block]) -> Iterator[str | TableModel]:
    """The texts and tables of some blocks; pictures are left out."""
    for block in blocks:
        if isinstance(block, Title):
            yield strong(block.text, f"  {block.beside}")
        elif isinstance(block, Heading):
            yield ""
        elif isinstance(block, Text):
            yield from wrapped(block.words)
        elif isinstance(block, Items):
            for item in block.items:
                label = f"{item.label:<16}" if item.label else ""
                yield from textwrap.wrap(
                    f"{item.word:<5} {label}{item.text}",
                    80,
                    subsequent_indent=" " * 22,
                    break_on_hyphens=False,
                )
            yield ""
        elif isinstance(block, Table):
            yield block.model.fitting(ON_PAGES)
