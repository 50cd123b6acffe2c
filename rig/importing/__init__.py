"""Published records become a run."""
