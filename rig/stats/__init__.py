"""Means, intervals, tests, and the measures they are taken of."""
