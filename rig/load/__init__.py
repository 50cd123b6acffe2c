"""Concurrent calls against one target: how its latency and its errors grow, and where the harness itself gives out."""
