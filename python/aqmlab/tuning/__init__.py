"""Tuning: a search for the parameters of a scenario that serve one or several goals best."""
