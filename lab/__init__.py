"""Studies, benchmarks, comparisons with other simulators and the kernel: only in a checkout.

Each module with a ``main`` is a program, ``python -m lab.NAME`` from the root of the checkout; the
Makefile has a target for most.
"""
