"""How far our own marks are from the truth: measured against a peer that says when it sent what."""
