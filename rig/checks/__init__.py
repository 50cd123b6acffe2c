"""Thresholds that a run is held to: what they are, how each is judged, and how the outcome is written for CI."""
