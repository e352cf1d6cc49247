"""lm-eval's results: older and newer files, filters, and models without a name."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import read_table
from attnlab.studies.integrity.tables.formats.lm_eval import is_lm_eval, name_lm_eval_seeds, read_lm_eval


def test_metrics_of_filters_and_older_files() -> None:
    figures = {"acc": 0.5, "acc_stderr": 0.1, "exact_match,strict-match": 0.25, "alias": "x", "flag": True}
    content = {"results": {"gsm8k": figures}, "config": {"model_args": "pretrained=gpt2,peft=out/lora"}}
    assert is_lm_eval(content)
    table = read_lm_eval("r.json", content)
    assert table.column("metric") == ["acc", "exact_match (strict-match)"]
    assert set(table.column("model")) == {"gpt2+out/lora"}
    assert "not the seed of a training run" in name_lm_eval_seeds(table).remarks[-1]


def test_other_files() -> None:
    assert not is_lm_eval({"results": [1]})
    assert not is_lm_eval({"results": {"a": {"acc": 1}}})


PRINTED = """hf (pretrained=out/base-seed1), gen_kwargs: (None), limit: None, num_fewshot: None, batch_size: 8
|    Tasks     |Version|Filter|n-shot|  Metric  |   |Value |   |Stderr|
|--------------|------:|------|-----:|----------|---|-----:|---|-----:|
|arc_easy      |      1|none  |     0|acc       |↑  |0.4364|±  |0.0102|
|              |       |none  |     0|acc_norm  |↑  |0.3982|±  |0.0100|
| - wikitext   |      2|strict|     5|spill     |↓  |0.2895|±  |0.0045|
"""


def test_a_printed_table_is_read_as_json_is(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    path.write_text(PRINTED, encoding="utf-8")
    table = read_table(str(path))
    cells = [(cell.arm, cell.group, cell.metric, cell.value, cell.sd) for cell in table.cells]
    assert cells == [
        ("out/base-seed1", "arc_easy", "acc", 0.4364, None),
        ("out/base-seed1", "arc_easy", "acc_norm", 0.3982, None),
        ("out/base-seed1", "wikitext", "spill ↓ (strict)", 0.2895, None),
    ]
    assert any("as lm-eval prints it: standard errors are over examples" in word for word in table.layout)


@pytest.mark.parametrize("has_model", [True, False])
def test_printed_tables_of_several_models(has_model: bool, tmp_path: Path) -> None:
    paths = []
    for arm in ("base", "ours"):
        for seed in (1, 2):
            path = tmp_path / f"{arm}-seed{seed}.md"
            text = PRINTED.replace("out/base-seed1", f"out/{arm}-seed{seed}").replace("0.4364", f"0.43{seed}4")
            path.write_text(text if has_model else text.partition("\n")[2], encoding="utf-8")
            paths.append(str(path))
    table = read_table(paths)
    assert table.arms == (["out/base", "out/ours"] if has_model else ["base", "ours"])
    assert {cell.seed for cell in table.cells} == {"1", "2"}
