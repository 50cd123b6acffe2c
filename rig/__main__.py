"""`python -m rig`: the same as the `rig` command."""

from rig.cli.main import run_cli

if __name__ == "__main__":
    run_cli()
