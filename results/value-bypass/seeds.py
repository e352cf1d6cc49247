"""Write the perplexity of each run of a study that has ended, trials left out, also while the study goes on.

python results/value-bypass/seeds.py STUDY > results/value-bypass/tables/per_seed.csv
"""

import csv
import json
import sys
import tomllib
from pathlib import Path


def main(study: Path) -> None:
    """Print a line for each run, as CSV: size, arm, seed, learning rate, perplexity, floor and seconds."""
    arms = tomllib.loads((study / "study.toml").read_text(encoding="utf-8"))["arms"]
    names = {line: name for name, line in arms.items()}
    lines = csv.writer(sys.stdout)
    lines.writerow(["size", "arm", "seed", "lr", "perplexity", "floor", "seconds"])
    runs = [folder for folder in (study / "runs").iterdir() if (folder / "result.json").exists()]
    read = [(_read(folder / "config.json"), _read(folder / "result.json")) for folder in runs]
    longest = max(result["num_steps"] for _, result in read)
    rows = []
    for config, result in read:
        if result["num_steps"] == longest:  # trials of a search are shorter
            model, last = config["start"]["config"], result["last"]
            size = f"{model['n_layer']}L-{model['n_embd']}"
            figures = f"{last['figures']['perplexity']:.5f}", f"{last['floor']:.4f}", f"{result['seconds']:.0f}"
            rate = config["optimizer"]["lr"]
            rows.append((size, names[config["start"]["mechanism"]], config["seed"], rate, *figures))
    order = list(arms)
    lines.writerows(sorted(rows, key=lambda row: (row[0], order.index(row[1]), row[2])))


def _read(file: Path) -> dict:
    return json.loads(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
