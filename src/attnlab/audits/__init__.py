"""Checks of a mechanism or a model for leaks, wrong gradients and other faults, to run before training."""

from .audit import audit
from .check import CHECKS, check
from .finding import Audit, Finding, FindingKind, FindingPart, Findings
from .subject import Mode, Subject

__all__ = ["CHECKS", "Audit", "Finding", "FindingKind", "FindingPart", "Findings", "Mode", "Subject", "audit", "check"]
