"""Tables of every usual form are read as what they are, and the reading is stated with the --map that gives it."""

import random
from itertools import product
from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import TableHints, judge, read_table
from attnlab.studies.integrity.tables.metrics import higher_is_better
from tests.studies.integrity.result_tables import write_text
from tests.studies.integrity.tables.table_corpus import CORPUS, SampleTable


@pytest.mark.parametrize("sample", CORPUS, ids=lambda sample: sample.file or "several files")
def test_a_table_is_read_as_what_it_is(sample: SampleTable, tmp_path: Path) -> None:
    table = read_table(sample.write(tmp_path))
    assert (table.arms, table.metrics, table.groups) == ([*sample.arms], [*sample.metrics], [*sample.groups])
    assert len({cell.seed for cell in table.cells}) == sample.num_seeds
    assert len(table.values) == sample.num_values
    for words in sample.words:
        assert words in "; ".join(table.layout)
    judgement = judge(table)
    assert any(analysis.rows for analysis in judgement.analyses)


@pytest.mark.parametrize("sample", CORPUS, ids=lambda sample: sample.file or "several files")
def test_the_map_that_is_shown_gives_the_same_reading(sample: SampleTable, tmp_path: Path) -> None:
    paths = sample.write(tmp_path)
    table = read_table(paths)
    again = read_table(paths, table.mapping)
    first, second = (
        {(cell.arm, cell.group, cell.metric, cell.seed, cell.step, cell.value, cell.sd) for cell in read.cells}
        for read in (table, again)
    )
    assert first == second
    assert table.budgets == again.budgets


ROWS = "0,82.1,83.3,82.4\n1,81.8,82.9,81.9\n2,82.3,83.6,82.6\n"
ARMS_IN_COLUMNS = (
    "Softmax,ReLU,Cosine (ours)", "softmax,relu,linear attention", "softmax,ours,ours + norm",
    "softmax,ours,ours (no norm)", "softmax,relu,cosine*", "softmax,ReLU (ours),Cosine (ours)",
    "softmax,ours-small,ours-base", "softmax,ours_v1,ours_v2", "GPT-2,GPT-2 + ALiBi,GPT-2 + Ours",
    "Baseline softmax,Ours relu,Ours cosine",
)  # fmt: skip


@pytest.mark.parametrize("names", ARMS_IN_COLUMNS)
@pytest.mark.parametrize("first", ["seed", "dataset"])
def test_every_column_of_scores_is_an_arm(names: str, first: str, tmp_path: Path) -> None:
    path = write_text(tmp_path, f"{first},{names}\n{ROWS}")
    table = read_table(path)
    assert sorted(table.arms) == sorted(names.split(","))
    assert table.baseline == names.split(",")[0]
    assert read_table(path, table.mapping).cells == table.cells


def test_every_column_of_scores_in_latex_is_an_arm(tmp_path: Path) -> None:
    rows = (
        r"Dataset & Softmax & ReLU & Cosine (ours) \\ \midrule MNLI & 84.3 & 84.5 & 84.9 \\ RTE & 66.1 & 66.9 & 67.8 \\"
    )
    path = tmp_path / "a.tex"
    path.write_text(rf"\begin{{tabular}}{{lccc}} {rows} \end{{tabular}}", encoding="utf-8")
    assert read_table(str(path)).arms == ["Softmax", "ReLU", "Cosine (ours)"]


@pytest.mark.parametrize("names", ["softmax,relu_acc,cosine_acc", "softmax,ours,loss"])
def test_columns_of_two_forms_are_one_question(names: str, tmp_path: Path) -> None:
    path = write_text(tmp_path, f"seed,{names}\n{ROWS}")
    with pytest.raises(RequestError, match=r"how are the columns .* meant: .* --map 'columns={arm}' if each") as raised:
        read_table(path)
    assert read_table(path, "columns={arm}").arms == names.split(",")
    offered = str(raised.value).rpartition("--map ")[2].strip("'")
    assert len(read_table(path, offered).arms) == 2


WORDS = ("softmax", "relu", "ours", "base", "GPT-2", "norm", "v1", "v2", "small", "no", "linear", "acc", "f1", "MNLI")
SIGNS = ("_", "-", " ", " + ", " (", "/", ".")
OTHERS = ("lr", "n_test", "std", "mean", "notes", "task", "tokens", "Avg.", "acc_stderr", "seed", "model", "step", "s1")


def draw_names(draw: random.Random) -> list[str]:
    names = []
    for _ in range(draw.randint(2, 6)):
        sign = draw.choice(SIGNS)
        name = sign.join(draw.choices(WORDS, k=draw.choice((1, 1, 2, 3))))
        names.append(name + (")" if "(" in name else "") + draw.choice(("", "", "", "_1", "_s2", "*")))
    return names


def draw_grid(draw: random.Random) -> list[str]:
    """Draw names of one form: each arm with each size, metric and seed, some of which are left out."""
    parts = [
        draw.sample(words, draw.randint(1, 2)) for words in (("base", "ours", "relu"), ("4l", "8l_256"), ("em", "f1"))
    ]
    parts = [draw.sample(parts[0] + ["gpt"], 2), *parts[1:], [f"{draw.choice(('', 's', 'seed'))}{n}" for n in (1, 2)]]
    kept = [parts[0], *draw.sample(parts[1:], draw.randint(1, 3))]
    return [
        draw.choice(("_", "_", "-")).join(words) if draw.random() < 0.02 else "_".join(words)
        for words in product(*kept)
    ]


@pytest.mark.parametrize("number", range(300))
def test_the_map_of_a_random_table_gives_the_same_reading(number: int, tmp_path: Path) -> None:
    draw = random.Random(number)
    names = draw_names(draw) if number % 2 else draw_grid(draw)
    header = list(dict.fromkeys([*draw.sample(OTHERS, draw.randint(0, 3)), *names]))
    texts = {"notes": "ab", "task": "xyy", "model": ("a", "b")}
    rows = [
        [
            str(row)
            if name in ("seed", "step")
            else draw.choice(texts[name])
            if name in texts
            else f"{draw.random():.4f}"
            for name in header
        ]
        for row in range(4)
    ]
    path = write_text(tmp_path, "\n".join(",".join(row) for row in [header, *rows]))
    try:
        table = read_table(path)
    except RequestError:
        return
    again = read_table(path, table.mapping or None)
    assert (again.cells, again.budgets) == (table.cells, table.budgets), table.mapping


@pytest.mark.parametrize(
    ("text", "mapping", "message"),
    [
        (
            "backbone,pool,acc\nbert,mean,1\nbert,cls,2\ngpt2,mean,3\ngpt2,cls,4\n",
            None,
            "which column of .* names the arms: 'backbone' .* or 'pool' .*--map arm=backbone or --map arm=pool",
        ),
        (
            "model,lr,seed,acc\na,1,1,80\na,2,1,81\nb,1,1,82\nb,2,1,83\n",
            None,
            "they differ in 'lr' .1, 2.. Give --map group=lr .* --map arm=model.lr",
        ),
        ("model,s1,s2\na,1,2\nb,3,4\n", "columns=run{seed}", "fits no column"),
        ("model,s1,s2\na,1,2\nb,3,4\n", "arm=modle", "no column 'modle', did you mean 'model'"),
        ("model,s1,s2\na,1,2\nb,3,4\n", "group=model+x", "no column 'x'"),
        (
            "model,acc\na,82.1 ± 0.4\nb,82.1 [81.7 82.5]\n",
            "value=acc",
            "'acc' must hold numbers, not '82.1 .81.7 82.5.'",
        ),
        ("model,acc_mean,acc_std\na,82,-1\nb,82,1\n", None, "'acc_std' must hold a standard deviation, not '-1'"),
        (
            "model,acc,n_seeds\na,82 ± 1,5\nb,82 ± 1,5.5\n",
            "num_seeds=n_seeds",
            "must hold a number of seeds, not '5.5'",
        ),
    ],
)
def test_what_is_not_clear_is_one_question(tmp_path: Path, text: str, mapping: str | None, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_table(write_text(tmp_path, text), mapping)


def test_several_columns_can_be_the_arm(tmp_path: Path) -> None:
    text = "model,lr,seed,acc\na,1,1,80\na,2,1,81\nb,1,1,82\n"
    assert read_table(write_text(tmp_path, text), "arm=model+lr").arms == ["a, 1", "a, 2", "b, 1"]


def test_the_metric_can_be_named(tmp_path: Path) -> None:
    table = read_table(write_text(tmp_path, "model,s1,s2\na,8,9\nb,7,6\n"), hints=TableHints(metric="perplexity"))
    assert table.metrics == ["perplexity"]
    assert "metric perplexity (from --metric)" in table.layout


LATEX_DATASET = r"""\caption{Test perplexity, mean $\pm$ std over 5 seeds.}
\begin{tabular}{lcc} Model & Params & WikiText-103 \\
\midrule Base & 125M & 24.3 $\pm$ 0.2 \\ Ours & 125M & 23.6 $\pm$ 0.2 \\ \end{tabular}"""
ONE_DATASET = {
    "a.tex": LATEX_DATASET,
    "a.csv": "model,WikiText-103\nBase,24.3 ± 0.2\nOurs,23.6 ± 0.2\n",
    "a.md": "|model|WikiText-103|\n|---|---|\n|Base|24.3 ± 0.2|\n|Ours|23.6 ± 0.2|\n",
    "long.csv": "model,seed,WikiText-103\nBase,1,24.3\nBase,2,24.1\nOurs,1,23.6\nOurs,2,23.5\n",
}


@pytest.mark.parametrize("mapping", [None, "value=WikiText-103"])
@pytest.mark.parametrize("file", ONE_DATASET)
def test_one_column_named_after_a_dataset_has_the_named_metric(file: str, mapping: str | None, tmp_path: Path) -> None:
    path, hints = tmp_path / file, TableHints(metric="perplexity")
    path.write_text(ONE_DATASET[file], encoding="utf-8")
    table = read_table(str(path), mapping, hints=hints)
    assert (table.metrics, table.groups) == (["perplexity"], ["WikiText-103"])
    assert "metric perplexity (from --metric)" in table.layout
    assert read_table(str(path), table.mapping, hints=hints).cells == table.cells


def test_one_column_named_after_a_dataset_has_the_metric_of_the_caption(tmp_path: Path) -> None:
    path = tmp_path / "a.tex"
    path.write_text(LATEX_DATASET, encoding="utf-8")
    assert read_table(str(path)).metrics == ["perplexity"]


@pytest.mark.parametrize("name", ["value", "result", "mean"])
def test_a_column_without_a_name_of_its_own_is_no_dataset(name: str, tmp_path: Path) -> None:
    path = write_text(tmp_path, f"model,seed,{name}\na,1,8\na,2,9\nb,1,7\nb,2,6\n")
    table = read_table(path, hints=TableHints(metric="perplexity"))
    assert (table.metrics, table.groups) == (["perplexity"], [""])


@pytest.mark.parametrize(
    "text", ["model,seed,accuracy\na,1,82\nb,1,83\n", "model,seed,metric,value\na,1,accuracy,82\nb,1,accuracy,83\n"]
)
def test_a_metric_that_is_not_used_is_named(text: str, tmp_path: Path) -> None:
    path = write_text(tmp_path, text)
    unused = "--metric perplexity not used, since the table names its metrics"
    assert unused in read_table(path, hints=TableHints(metric="perplexity")).layout
    assert not any("not used" in words for words in read_table(path, hints=TableHints(metric="acc")).layout)


def test_budgets_beside_a_column_named_after_a_dataset_are_kept(tmp_path: Path) -> None:
    path = write_text(tmp_path, "model,seed,tokens,WikiText\na,1,100,8\nb,1,200,7\n")
    table = read_table(path, hints=TableHints(metric="perplexity"))
    assert table.budgets["b", "WikiText", "1"] == {"tokens": "200"}


@pytest.mark.parametrize("name", ["WikiText", "ppl"])
@pytest.mark.parametrize("file", ["a.csv", "a.md"])
def test_a_column_named_std_is_the_spread_of_the_only_score(name: str, file: str, tmp_path: Path) -> None:
    rows = [["model", name, "std"], ["a", "24.3", "0.2"], ["b", "23.6", "0.3"]]
    text = "\n".join(",".join(row) for row in rows)
    if file.endswith(".md"):
        text = "\n".join(f"|{'|'.join(row)}|" for row in [rows[0], ["---"] * 3, *rows[1:]])
    path = tmp_path / file
    path.write_text(text, encoding="utf-8")
    table = read_table(str(path), hints=TableHints(metric="ppl", num_seeds=5))
    assert [(cell.metric, cell.value, cell.sd) for cell in table.cells] == [("ppl", 24.3, 0.2), ("ppl", 23.6, 0.3)]


@pytest.mark.parametrize(
    ("header", "hints", "metrics", "is_higher"),
    [
        ("Model,Gap ↓,BLEU ↑", None, ["Gap ↓", "BLEU ↑"], [False, True]),
        ("Model,WikiText ↓,C4 ↓", "gap", ["gap ↓"], [False]),
        ("Model,MNLI ↑,RTE ↑", "accuracy", ["accuracy"], [True]),
        ("Model,MNLI ↑,WikiText ↓", "accuracy", ["accuracy", "WikiText ↓"], [True, False]),
        ("Model,s1,s2", "gap (lower is better)", ["gap (lower is better)"], [False]),
        ("seed,base ↓,ours ↓", None, ["value ↓"], [False]),
        ("Model,seed,perplexity", "PPL ↑", ["perplexity ↑"], [True]),
        ("Model,seed,ppl ↑", "perplexity ↓", ["ppl ↓"], [False]),
        ("Model,seed,FLIP", "flip ↓", ["FLIP ↓"], [False]),
        ("Model,FLIP,accuracy", "accuracy ↓", ["accuracy ↓"], [False]),
        ("seed,base_ppl,ours_ppl", "perplexity ↑", ["ppl ↑"], [True]),
    ],
)
def test_an_arrow_gives_the_direction(
    header: str, hints: str | None, metrics: list[str], is_higher: list[bool], tmp_path: Path
) -> None:
    path = write_text(tmp_path, f"{header}\n{'1' if header.startswith('seed') else 'base'},1,2\n2,3,4\n")
    table = read_table(path, hints=TableHints(metric=hints))
    assert table.metrics == metrics
    assert [higher_is_better(metric) for metric in table.metrics] == is_higher


def test_a_misspelt_metric_has_a_hint(tmp_path: Path) -> None:
    path = write_text(tmp_path, "Model,s1,s2\na,1,2\nb,3,4\n")
    layout = read_table(path, hints=TableHints(metric="acuracy")).layout
    assert "metric acuracy (from --metric; it is not a known name, did you mean 'accuracy'?)" in layout


@pytest.mark.parametrize(
    ("header", "hint", "arms", "groups", "metrics"),
    [
        ("steps,base_4l_em_mean,base_4l_em_std,v_4l_em_mean,v_4l_em_std", None, ["base", "v"], ["4l"], ["em"]),
        ("steps,base_256_em_avg,base_256_em_sd,v_256_em_avg,v_256_em_sd", None, ["base", "v"], ["256"], ["em"]),
        ("steps,base_em_mean,base_em_stderr,v_em_mean,v_em_stderr", None, ["base", "v"], [""], ["em"]),
        ("steps,base mean,base std,ours mean,ours std", "accuracy", ["base", "ours"], [""], ["accuracy"]),
        ("model,MNLI_mean,MNLI_std,RTE_mean,RTE_std", "accuracy", ["500", "900"], ["MNLI", "RTE"], ["accuracy"]),
        ("model,MNLI_mean,MNLI_std,RTE_mean,RTE_std", None, ["500", "900"], ["MNLI", "RTE"], ["accuracy"]),
    ],
)
def test_a_suffix_for_mean_or_spread_is_a_statistic(
    header: str, hint: str | None, arms: list[str], groups: list[str], metrics: list[str], tmp_path: Path
) -> None:
    path = write_text(tmp_path, f"{header}\n500,17.0,5.1,12.7,4.0\n900,32.2,.25,36.8,4.1\n")
    table = read_table(path, hints=TableHints(metric=hint, num_seeds=4))
    assert (table.arms, table.groups, table.metrics) == (arms, groups, metrics)
    assert all(cell.sd is not None for cell in table.cells)
    assert not any(word.startswith("metric not named") for word in table.layout)
    again = read_table(path, table.mapping, hints=TableHints(metric=hint, num_seeds=4))
    assert again.cells == table.cells


@pytest.mark.parametrize("header", ["model,MNLI_s1,MNLI_s2,RTE_s1,RTE_s2", "model,MNLI_s1,MNLI_s2,MNLI_s3,MNLI_s4"])
def test_seeds_of_several_tasks_have_the_metric_that_is_given(header: str, tmp_path: Path) -> None:
    path = write_text(tmp_path, f"{header}\nbase,84.1,84.3,66.1,67.1\nours,85.1,85.3,67.1,68.1\n")
    table = read_table(path, hints=TableHints(metric="accuracy"))
    assert table.metrics == ["accuracy"]
    assert table.groups == (["MNLI", "RTE"] if "RTE" in header else ["MNLI"])
    assert "metric accuracy (from --metric)" in table.layout
    assert read_table(path, table.mapping, hints=TableHints(metric="accuracy")).cells == table.cells
    assert read_table(path).groups == (["MNLI", "RTE"] if "RTE" in header else ["MNLI"])


def test_seeds_of_several_metrics_keep_their_names(tmp_path: Path) -> None:
    path = write_text(tmp_path, "model,acc_s1,acc_s2,loss_s1,loss_s2\na,84.1,84.3,66.1,67.1\nb,85.1,85.3,67.1,68.1\n")
    table = read_table(path, hints=TableHints(metric="f1"))
    assert table.metrics == ["acc", "loss"]
    assert "--metric f1 not used, since the table names its metrics" in table.layout


@pytest.mark.parametrize("mapping", ["arm=(no name),value=acc+f1", "value=acc+f1"])
def test_a_column_of_arms_without_a_name_is_in_the_map(mapping: str, tmp_path: Path) -> None:
    path = write_text(
        tmp_path, "| | acc | f1 |\n|--|--|--|\n| base | 82.1±0.1 | 80.1±0.1 |\n| ours | 82.9±0.1 | 80±1 |\n"
    )
    table = read_table(path)
    assert table.mapping == "arm=(no name),value=acc+f1"
    assert read_table(path, mapping).cells == table.cells
