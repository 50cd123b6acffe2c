"""Emulators of the shipped templates' agents, written from their vendors' protocols and not from the templates."""
