"""Compile the loops of attnlab for the processors that a wheel serves without a compiler.

A variant without a compiler is left out, with a warning; attnlab then compiles the loops on first use.
"""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "attnlab/kernels/cpu"


class PrebuiltLoops(BuildHookInterface):  # type: ignore[type-arg]
    """Adds a library per variant of variants.py to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile every variant that a compiler is installed for; an editable installation has none."""
        if version == "editable":
            return
        # attnlab itself cannot be imported here, because it needs torch.
        source = Path(self.root) / "src" / FOLDER
        variants = runpy.run_path(str(source / "variants.py"))
        checksums = runpy.run_path(str(Path(self.root) / "src/attnlab/checksums.py"))
        self.folder = tempfile.TemporaryDirectory()
        for variant in variants["VARIANTS"]:
            body, reason = variants["build_variant"](variant)
            if not body:
                self.app.display_warning(f"attnlab: this wheel has no loops for {variant.name}: {reason}")
                continue
            file = Path(self.folder.name) / variant.file_name
            file.write_bytes(checksums["seal"](body))
            build_data["force_include"][str(file)] = f"{FOLDER}/prebuilt/{variant.file_name}"
            self.app.display_info(f"attnlab: loops for {variant.name}, {len(body) // 1024} KB")
