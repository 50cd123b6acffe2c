"""Renders a bank's clips offline, from items and recipes (`rig bank render`).

Needs the extra `render`, and Debian's `flite` for some voices; those who only use a bank need neither, since the clips
ship.
"""
