"""The same scenarios here, in ns-2 and in ns-3: what they cost, and what comes out."""
