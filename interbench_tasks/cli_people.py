"""`interbench people`: what people do for a run."""

from __future__ import annotations

import typer

people_app = typer.Typer(no_args_is_help=True, help="People in the loop, and people who judge what judges judged.")
