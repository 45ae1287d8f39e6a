"""Checks: properties of plug-ins, examples computed by hand, packet scripts."""
