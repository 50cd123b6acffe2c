"""Stored runs read again: the cells that a run folder's captures belong to, and their frames through today's code."""
