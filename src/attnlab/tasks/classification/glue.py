"""GLUE's nine tasks (Wang et al. 2019), BoolQ (Clark et al. 2019), and any file with a label column.

Columns have the names of GLUE's own files first, then those of the hub.
"""

from .labels import BINARY, Labels, Range
from .task import Classification
from .text import Columns

SENTENCES = ("sentence1", "premise"), ("sentence2", "hypothesis")
ENTAILMENT = Labels(("entailment", "not_entailment"))
NLI = Labels(("entailment", "neutral", "contradiction"))
COLA = Columns(("sentence",), headerless=("source", "label", "mark", "sentence"))
MRPC = Columns(("#1 String", "sentence1"), ("Quality", "label"), ("#2 String", "sentence2"))
QQP = Columns(("question1",), ("is_duplicate", "label"), ("question2",))
STSB = Columns(("sentence1",), ("score", "label"), ("sentence2",))
MNLI = Columns(SENTENCES[0], ("gold_label", "label"), SENTENCES[1])

GLUE = (
    Classification("cola", COLA, BINARY, ("matthews", "accuracy")),
    Classification("sst2", Columns(("sentence",)), BINARY),
    Classification("mrpc", MRPC, BINARY, ("f1", "accuracy")),
    Classification("qqp", QQP, BINARY, ("f1", "accuracy")),
    Classification("stsb", STSB, Range(0, 5), ("pearson", "spearman")),
    Classification("mnli", MNLI, NLI, splits=(("dev", "dev_matched"), ("test", "test_matched"))),
    Classification("mnli_mismatched", MNLI, NLI, splits=(("dev", "dev_mismatched"), ("test", "test_mismatched"))),
    Classification("qnli", Columns(("question",), pair=("sentence",)), ENTAILMENT),
    Classification("rte", Columns(SENTENCES[0], pair=SENTENCES[1]), ENTAILMENT),
    Classification("wnli", Columns(SENTENCES[0], pair=SENTENCES[1]), BINARY),
)
"""The nine, MNLI with both of its development sets."""

SPELLINGS = {"sst-2": "sst2", "sts-b": "stsb", "mnli-m": "mnli", "mnli-mm": "mnli_mismatched", "mnli_matched": "mnli"}
"""Other ways in which GLUE's tasks are written."""

PASSAGES = Columns(("question",), ("label", "answer"), ("passage",), cluster=("title", "passage"))
BOOLQ = Classification("boolq", PASSAGES, Labels(("false", "true")), max_len=256)
"""Yes or no to a question about a passage. The larger class of its validation set, yes, is 2033 of 3270: 0.6217."""

TEXT = Classification("text", Columns(("text", "sentence")))
"""Any file of texts with labels: `load("text", columns=…).with_labels_of(file)`."""
