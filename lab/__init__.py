"""What only a checkout runs: studies, comparisons with other simulators and the kernel, costs.

Each module with a ``main`` is a program, ``python -m lab.NAME`` from the root of the checkout; the
Makefile has a target for most.
"""
