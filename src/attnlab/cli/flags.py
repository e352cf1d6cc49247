"""Settings in the messages of `attnlab train`, named as they are typed: --data instead of data.train."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from attnlab.errors import AttnlabError

FLAGS: Mapping[str, str] = {
    "data.train": "--data", "data.dev": "--dev", "data.tokenizer": "--tokenizer",
    "start.architecture": "--architecture", "start.checkpoint": "--start", "start.mechanism": "--mechanism",
    "optimizer.lr": "--lr", "tuning.mode": "--tune",
    "seed": "--seed", "threads": "--threads", "prompts": "--prompt", "sentences": "--sentence",
    "trackers": "--track",
}  # fmt: skip
"""The option of every setting that has one; others are set with --set."""
SECTIONS = ("data", "start", "optimizer", "schedule", "tuning", "task_settings")
SETTING = re.compile(rf"(?<![\w./'-])(?:--set )?((?:{'|'.join(SECTIONS)})\.\w+)(?![\w/-]|\.\w)")
"""The path of a setting in a message; not a part of a file's name, and not inside of quotes."""
FIRST = re.compile(r"(\w+)(?=: )")
SEGMENT = re.compile(r"segments\.(\d+)(?:\.(\w+))?")


@contextmanager
def name_flags(has_segments: bool) -> Iterator[None]:
    """Name settings as options in the errors that are raised inside. has_segments: whether --segment was given."""
    try:
        yield
    except AttnlabError as error:
        raise type(error)(write_flags(str(error), has_segments)) from error


def write_flags(message: str, has_segments: bool) -> str:
    """Name the settings of a message as options."""

    def name_segment(match: re.Match[str]) -> str:
        number, setting = match.groups()
        if has_segments:
            return f"--segment {int(number) + 1}" + (f", {setting}" if setting else "")
        return f"--{setting}" if setting in ("steps", "epochs", "batch") else "--segment"

    message = SEGMENT.sub(name_segment, message)
    message = SETTING.sub(lambda match: FLAGS.get(match[1], f"--set {match[1]}"), message)
    return FIRST.sub(lambda match: FLAGS.get(match[1], match[1]), message, count=1) if FIRST.match(message) else message
