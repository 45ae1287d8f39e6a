"""Reports: one file about runs that needs no network."""
