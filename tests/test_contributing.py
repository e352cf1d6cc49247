"""The stage that CONTRIBUTING.md writes is registered, computes, and answers a slip as the page says."""

import re
import textwrap
from pathlib import Path

import pytest
import torch

from attnlab.errors import MechanismError
from attnlab.mechanisms import Mechanism

PAGE = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("own_stages")
def test_a_stage_of_ones_own_works() -> None:
    (block,) = re.findall(r"^ *```python\n(.*?)^ *```", PAGE, re.M | re.S)
    names: dict[str, object] = {"__name__": "contributing"}
    exec(compile(textwrap.dedent(block), "a CONTRIBUTING block", "exec"), names)
    assert isinstance(names["out"], torch.Tensor)
    assert names["out"].shape == (1, 2, 16, 8)
    with pytest.raises(MechanismError, match=r"did you mean 'width'\?"):
        Mechanism.parse("laplace(widht=2)")
