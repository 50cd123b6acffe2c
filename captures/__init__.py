"""What was observed: clock, frames, events, marks, captures, the run folder, cassettes.

Imports nothing else of the project, and knows neither vendors nor sockets.
"""
