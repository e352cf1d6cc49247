"""Is it sound? Questions put to a mechanism, or to a model, before anyone pays for training it."""

from .audit import audit
from .check import CHECKS, check
from .finding import Audit, Finding, FindingKind, Findings, Part
from .subject import Mode, Subject

__all__ = ["CHECKS", "Audit", "Finding", "FindingKind", "Findings", "Mode", "Part", "Subject", "audit", "check"]
