"""Files of a report: figures of an earlier report are removed, other files stay."""

from pathlib import Path

from attnlab.reports import write_report

from .made import BASE, Made


def test_pictures_of_an_earlier_report_go_and_files_of_others_stay(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.give("dot", BASE)
    folder = made.done()
    write_report(folder)
    pictures = folder / "figures"
    for name in ("forest-old-tiny.svg", "my-own.svg", "forest-notes.txt"):
        (pictures / name).write_text("x", encoding="utf-8")
    write_report(folder)
    assert {path.name for path in pictures.iterdir()} == {
        "seeds-recall-tiny.svg", "seeds-recall-tiny.png", "my-own.svg", "forest-notes.txt"
    }  # fmt: skip
