"""The model card of an exported model, and the plugin files that are exported with it."""

from .model_card import card_of
from .stage_files import Carried, carried_by

__all__ = ["Carried", "card_of", "carried_by"]
