"""Clips as the caller's side needs them: read, resampled, measured and cut into chunks.

No sockets, no pacing. All modules but `chunks` import NumPy: commands import them when they run, not when they start.
"""
