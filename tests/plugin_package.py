"""A plugin package for one test, without pip."""

from __future__ import annotations

from pathlib import Path


def install_plugin(folder: Path, name: str, code: str) -> None:
    """A plugin package that is found by its entry point once `folder` is on PYTHONPATH."""
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[interbench]\n{name} = {name}\n", encoding="utf-8")
