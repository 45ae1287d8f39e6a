"""Scenario files, their fields and their variations."""
