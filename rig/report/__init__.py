"""Reports on runs: pure data, then text, JSON or Markdown of it."""
