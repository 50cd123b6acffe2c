"""`python -m rig.bank.rendering`: render what changed in a bank, check it, and rewrite its audio manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from rig.bank.loader import BankError, load_bank
from rig.bank.rendering.bank_render import render_bank
from rig.bank.rendering.stock import render_stock
from rig.bank.rendering.voices import SynthesisError
from rig.bank.yaml_file import YamlFileError

console = Console(stderr=True, soft_wrap=True)


def main(
    bank: Annotated[str, typer.Option(help="The bank: demo, or a folder with items and recipes.yaml.")] = "demo",
    item: Annotated[list[str] | None, typer.Option(help="Only these items (repeat the option).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Render also what has not changed.")] = False,
    stock: Annotated[Path | None, typer.Option(help="Only render the agents' stock replies into this folder.")] = None,
) -> None:
    """Render the clips of a bank from its recipes. Exit code 1: some clip failed a gate; 2: it could not be done."""
    try:
        if stock is not None:
            for path in render_stock(stock):
                console.print(f"wrote {path}")
            return
        failures = render_bank(load_bank(bank), set(item or ()), force=force, console=console)
    except (BankError, SynthesisError, YamlFileError, ValueError) as error:
        console.print(f"[red]error:[/] {escape(str(error))}", highlight=False)
        raise typer.Exit(2) from error
    if failures:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
