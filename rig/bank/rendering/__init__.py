"""Renders the demo bank's clips offline, from recipes (maintainers only).

Needs the extra `render` and Debian's `flite`; a bank's users need neither, since the clips ship. Run it with
`python -m rig.bank.rendering`.
"""
