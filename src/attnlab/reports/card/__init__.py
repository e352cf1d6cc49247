"""The model card of an exported model, and the plugin files that are exported with it."""

from .model_card import write_model_card
from .stage_files import StageFile, find_stage_files

__all__ = ["StageFile", "find_stage_files", "write_model_card"]
