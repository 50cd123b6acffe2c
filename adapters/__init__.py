"""One folder per dialect: pure translation, no sockets.

Beside them the one session shell, which joins a dialect to a transport.
"""
