"""Validation: disciplines against their papers, the simulator against the kernel."""
