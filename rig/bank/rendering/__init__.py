"""Renders the demo bank's clips offline, from recipes (maintainers only; needs the extra `render` and Debian's `flite`).

Not needed to use a bank: the rendered clips ship. Run it with `python -m rig.bank.rendering`.
"""
