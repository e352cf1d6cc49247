"""A small run without dropout for torchrun: `torchrun --nproc-per-node 2 -m tests.training.sharing FOLDER [STOP]`.

With STOP the run is asked to stop after that many steps, as Ctrl-C does.
"""

import os
import signal
import sys

from attnlab.training import Data, Display, Optimizer, RunSpec, Segment, Start, build, train

RUN = RunSpec(
    task="mlm",
    start=Start(
        architecture="bert",
        config={
            "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
            "max_position_embeddings": 64, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0
        },
        mechanism="cosine(scale=learned) | softmax"
    ),
    data=Data(train="embedded:pydoc", tokenizer="wordpiece:300", num_train=120, num_dev=8),
    task_settings={"max_len": 32}, segments=(Segment(steps=12, batch=10, micro_batch=3),), seed=3, precision="fp32",
    evaluate_every=6, checkpoint_every=4, log_every=1,
    optimizer=Optimizer(name="muon"), threads=1,
)  # fmt: skip


class Stopper(Display):
    """Stops its own process after a step, as Ctrl-C does."""

    def __init__(self, step: int) -> None:
        super().__init__(is_quiet=True)
        self.step = step

    def advance(self, step: int, num_steps: int, tokens: int, loss: float) -> float:
        """Ask to stop."""
        if step == self.step:
            os.kill(os.getpid(), signal.SIGINT)
        return 0.0


if __name__ == "__main__":
    folder, *stop = sys.argv[1:]
    train(build(RUN.replace()), folder, Stopper(int(stop[0]) if stop else -1))
