"""Sweeps: a scenario with many values of some fields, each with several seeds."""
