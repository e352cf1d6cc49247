"""Valid inputs of every kind, made once: what the fuzzer breaks."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
from pathlib import Path

from tests.studies.folders import BETTER, DOT, write_folder
from tests.studies.samples import STUDY

TABLE = "arm,seed,accuracy,loss\n" + "".join(
    f"{arm},{seed},{0.5 + 0.013 * seed + 0.05 * number:.3f},{1.5 - 0.02 * seed:.2f}\n"
    for number, arm in enumerate(("base", "idea"))
    for seed in range(5)
)
WIDE = "seed,base,idea\n1,0.5,0.55\n2,0.52,0.56\n3,0.51,0.58\n4,0.5,0.57\n5,0.53,0.59\n"
PROSE = "The list keeps its order. It holds items, and it grows.\nA set holds no item twice; a dict maps keys.\n" * 6
SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "Lists",
            "paragraphs": [
                {
                    "context": "A list keeps its order.",
                    "qas": [
                        {"id": f"q{number}", "question": "What keeps its order?", "answers": [
                            {"text": "A list", "answer_start": 0}]} for number in range(3)
                    ],
                }
            ],
        }
    ],
}  # fmt: skip
PREDICTIONS = {"q0": "A list", "q1": "list", "q2": "its order"}
ROWS = "".join(
    json.dumps({"idx": n, "sentence": f"a film {n}", "text": f"row {n} of text.", "label": n % 2}) + "\n"
    for n in range(6)
)
LABELS = "".join(f"{n}\t{n % 2}\n" for n in range(6))
PLUGIN = '''\
from dataclasses import dataclass
from attnlab.mechanisms import Dims, Parameter, Score, argument, stage
import torch


@stage("near")
@dataclass(frozen=True)
class Near(Score):
    """exp of minus a distance."""

    width: float = argument(1.0, at_least=0.1)

    def parameters(self, dims):
        return {"gain": Parameter((dims.num_heads,), 1.0, 1.0)}

    def __call__(self, q, k, p):
        return torch.exp(-torch.cdist(q, k, p=1) / self.width)
'''
KEYS = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.3, 0.4]]
MODEL = ("n_layer=1", "n_embd=16", "n_head=2", "n_positions=32")
TRAIN = (
    "train", "clm", "--architecture", "gpt2", "--data", "prose.txt", "--tokenizer", "word", "--steps", "1",
    "--segment", "batch=2,length=16", "--set", "precision=fp32",
    *(part for text in MODEL for part in ("--set", f"config.{text}")),
)  # fmt: skip


def write_examples(folder: Path) -> None:
    """Write one valid input of every kind into a folder; runs and models only once trained by `train_examples`."""
    folder.mkdir(parents=True)
    texts = {
        "study.toml": STUDY, "table.csv": TABLE, "wide.csv": WIDE, "prose.txt": PROSE, "rows.jsonl": ROWS,
        "labels.tsv": f"idx\tprediction\n{LABELS}", "plugin.py": PLUGIN, "squad.json": json.dumps(SQUAD),
        "table.tsv": "text\tlabel\na film\t1\nanother\t0\n", "rows.csv": 'text,label\n"a, film",1\nanother,0\n',
        "predictions.json": json.dumps(PREDICTIONS), "odds.json": json.dumps(dict.fromkeys(PREDICTIONS, 0.3)),
        "keys.json": json.dumps(KEYS), "keys.csv": "1,0\n0,1\n-1,0.5\n",
        "vocab.txt": "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "list", "a", "##s"]) + "\n",
        "list.json": json.dumps([json.loads(line) for line in ROWS.splitlines()]),
        "summary.csv": "arm,metric,mean,sd,n\nbase,accuracy,0.526,0.02,5\nidea,accuracy,0.576,0.02,5\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "prose.txt.gz").write_bytes(gzip.compress(PROSE.encode()))
    (folder / "rows.jsonl.xz").write_bytes(lzma.compress(ROWS.encode()))
    _write_parquet(folder / "rows.parquet")
    write_folder(folder / "study", {"dot": DOT, "better": BETTER})


def _write_parquet(file: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [json.loads(line) for line in ROWS.splitlines()]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)


def train_examples(folder: Path) -> None:
    """Write a trained run, its exported model, and a plain checkpoint of transformers."""
    import transformers

    from attnlab.cli.verbs import main

    assert main([*TRAIN, "--out", "run", "--json"]) == 0
    assert main(["export", "run", "--out", "saved"]) == 0
    config = transformers.GPT2Config(
        n_layer=1, n_embd=16, n_head=2, n_positions=32, vocab_size=64, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config)  # type: ignore[no-untyped-call]
    model.save_pretrained(folder / "plain")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        if (folder / "saved" / name).exists():
            shutil.copy(folder / "saved" / name, folder / "plain" / name)
