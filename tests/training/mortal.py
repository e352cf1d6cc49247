"""A small run as a process that can be killed. Imports take seconds, so one process has them and forks the others:

each line `FOLDER [SECONDS]` on its input runs the run there in a fork, killed with -9 after so many seconds, and is
answered by the fork's status. The run has all that could go wrong when resumed: dropout, a learned and scheduled
mechanism, accumulation, two segments, two optimizers, evaluations, traces, samples.
"""

import os
import signal
import sys
import time
import traceback

import torch

from attnlab.training import (
    Data,
    Display,
    Optimizer,
    RunSpec,
    Schedule,
    Segment,
    Start,
    build,
    train,
)  # fmt: skip

RUN = RunSpec(
    task="clm",
    start=Start(
        architecture="gpt2",
        config={"n_embd": 24, "n_layer": 2, "n_head": 2, "n_positions": 64, "attn_pdrop": 0.1, "resid_pdrop": 0.1},
        mechanism="dot | softmax | bypass(alpha=0.5, learn=true, per=head, schedule=warmup) | token_dropout(0.1)"
    ),
    data=Data(train="embedded:pydoc", tokenizer="word:300", num_train=200, num_dev=12),
    task_settings={"max_len": 32},
    segments=(
        Segment(name="short", steps=14, batch=12, micro_batch=5, length=16),
        Segment(name="long", steps=10, batch=8, window=3)
    ),
    seed=7,
    optimizer=Optimizer(name="muon", lr=3e-3, adamw_lr=1e-3),
    schedule=Schedule(kind="cosine", warmup=4),
    precision="fp32",
    evaluate_every=6, checkpoint_every=4, log_every=3, trace_every=5, sample_every=8, prompts=("the",),
    sentences=("the name of the file",), num_tokens=4,
    threads=1,
)  # fmt: skip


def run_in_fork(folder: str, seconds: float | None) -> int:
    """Run the run in a fork, and kill it after some time; return 0 where it ended by itself, else the signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            train(build(RUN), folder, Display(is_quiet=True))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Answer line by line."""
    torch.set_num_threads(1)  # a fork has one thread, and would wait for others for ever
    build(RUN)
    for line in sys.stdin:
        folder, *seconds = line.rstrip("\n").split("\t")
        print(run_in_fork(folder, float(seconds[0]) if seconds else None), flush=True)


if __name__ == "__main__":
    main()
