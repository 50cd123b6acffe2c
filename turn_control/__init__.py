"""Plays the caller in real time and decides when a turn has ended. Knows no vendor and opens no connection."""
