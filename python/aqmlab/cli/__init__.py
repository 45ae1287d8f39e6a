"""The command line: ``aqmlab``."""

from aqmlab.cli.app import main

__all__ = ["main"]
