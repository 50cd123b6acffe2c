"""Moves frames. Knows sockets and devices, not vendors.

A transport takes bytes to write and calls back with received frames, each stamped as its bytes arrive.
"""
