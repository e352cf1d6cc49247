"""lm-eval's results: older and newer files, filters, and models without a name."""

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
