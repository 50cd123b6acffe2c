"""Endpointing: what each way of ending the caller's turn costs in latency, and how often it cuts the caller off."""
