"""Timing of calls that others recorded: two channels, who speaks when, and the figures that follow from it."""
