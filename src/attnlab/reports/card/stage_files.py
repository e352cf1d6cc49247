"""The plugin files with a user's own stages that are exported with a model, which cannot be loaded without them."""

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
    """A warning if it differs from the file that the study was run with; otherwise empty."""

    @property
    def name(self) -> str:
        """Its name in the exported folder."""
        return self.source.name

    def copy_to(self, folder: Path) -> None:
        """Copy it into a folder; the name of one of the model's own files is refused."""
        if (folder / self.name).exists():
            raise RequestError(f"--plugin {self.source} has the name of a file of the export; rename it")
        shutil.copyfile(self.source, folder / self.name)


def find_stage_files(restored: Restored, folder: Path, plugins: Sequence[str]) -> list[StageFile]:
    """Return the files to export with a run's model: all plugins if one of its stages is the user's own."""
    if not plugins or not hash_stages(str(mechanism_of(restored.model)), plugins):
        return []
    known_hashes, stage_files = find_plugin_hashes(folder), []
    for source, content in zip(plugins, read_plugins(plugins), strict=True):
        is_changed = bool(known_hashes) and content["sha256"] not in known_hashes
        note = f"{content['file']} has changed since the study was run: it may compute something else" * is_changed
        stage_files.append(StageFile(Path(source), content["sha256"], note))
    return stage_files
