"""Published papers: their tables, claims and figures beside ours."""
