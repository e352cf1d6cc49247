"""The plugin files with a user's own stages that are exported with a model, which cannot be loaded without them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import RequestError
from attnlab.install import mechanism_of
from attnlab.studies.plan.identity import hash_stages
from attnlab.studies.plan.provenance import read_plugins
from attnlab.training.job.restore import Restored

from .study_context import find_plugin_hashes


@dataclass(frozen=True)
class StageFile:
    """A plugin file that is exported with a model."""

    source: Path
    sha256: str
    note: str
    """What must be said of it; nothing where it is the one that the study was run with, or no study says."""

    @property
    def name(self) -> str:
        """What it is called in the exported folder."""
        return self.source.name

    def copy_to(self, folder: Path) -> None:
        """Copy it into a folder; a name that the model's own files have is refused."""
        if (folder / self.name).exists():
            raise RequestError(f"--plugin {self.source} has the name of a file of the export; rename it")
        shutil.copyfile(self.source, folder / self.name)


def find_stage_files(found: Restored, folder: Path, plugins: Sequence[str]) -> list[StageFile]:
    """Return the files that go with a run's model: all that were given, where one of its stages is the user's own."""
    if not plugins or not hash_stages(str(mechanism_of(found.model)), plugins):
        return []
    known, carried = find_plugin_hashes(folder), []
    for source, noted in zip(plugins, read_plugins(plugins), strict=True):
        is_other = bool(known) and noted["sha256"] not in known
        note = f"{noted['file']} is not as it was when the study was run: it may compute something else" * is_other
        carried.append(StageFile(Path(source), noted["sha256"], note))
    return carried
