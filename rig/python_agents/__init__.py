"""Agents that are a Python class of the user's, run in a process of their own under the interpreter that is named."""
