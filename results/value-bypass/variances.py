"""Measure Var[V], Var[R] and Cov(V, R) of a bypass V + αR, R = ReLU(x), in each head of a study's models.

python results/value-bypass/variances.py STUDY TEXT > results/value-bypass/tables/variances.csv
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer

import attnlab
from attnlab.audits.value_path import variance

NUM_ROWS, LENGTH = 64, 65
ALPHA = 0.5


def main(study: Path, text: str) -> None:
    """Print a line for each head of each trained model, as CSV."""
    lines = csv.writer(sys.stdout)
    lines.writerow(["size", "mechanism", "seed", "layer", "head", "alpha", "var_v", "var_r", "covariance", "var_after"])
    runs = [(*_describe(folder), folder) for folder in (study / "runs").iterdir() if (folder / "result.json").exists()]
    longest = max(steps for *_, steps, _ in runs)
    for size, mechanism, seed, steps, folder in sorted(runs):
        if steps == longest and "bypass" in mechanism and "identity" not in mechanism:  # no trials of a search
            for row in _measure(folder, text):
                lines.writerow([size, mechanism, seed, *row])


def _describe(folder: Path) -> tuple[str, str, int, int]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    model: dict[str, Any] = json.loads((folder / "model.json").read_text())
    size = f"{model['n_layer']}L-{model['n_embd']}"
    return size, config["start"]["mechanism"], config["seed"], config["segments"][0]["steps"]


def _measure(folder: Path, text: str) -> list[list[object]]:
    model: Any = attnlab.load(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder / "tokenizer")
    ids = torch.tensor(tokenizer(text)["input_ids"][: NUM_ROWS * LENGTH]).reshape(NUM_ROWS, LENGTH)
    inputs: list[Tensor] = []
    layers = [block.attn for block in model.transformer.h]
    for layer in layers:
        layer.c_attn.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    with torch.no_grad():
        model.eval()(ids)
    rows: list[list[object]] = []
    for at, (layer, x) in enumerate(zip(layers, list(inputs), strict=True)):
        v = layer.c_attn(x).chunk(3, -1)[2]
        own = dict(layer.named_parameters()).get("attnlab.bypass_alpha")
        alphas = [ALPHA] * layer.num_heads if own is None else own.flatten().tolist()
        for head, (alpha, v_head, x_head) in enumerate(
            zip(alphas, v.chunk(layer.num_heads, -1), x.chunk(layer.num_heads, -1), strict=True)
        ):
            found = variance(v_head.detach(), x_head.relu(), alpha)
            figures = (alpha, found.before, found.added, found.covariance, found.after)
            rows.append([at, head, *(f"{figure:.4g}" for figure in figures)])
    return rows


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]).read_text(encoding="utf-8"))
