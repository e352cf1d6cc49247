"""Named mechanisms: from the literature, controls for studies, and specimens of known faults. Every contract test runs
over all of them, so a new one needs only its entry here."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .grammar import LAYER_MARKS
from .layered import LayeredMechanism, Line, parse_line
from .mechanism import Mechanism
from .scores import Dot
from .stage import NAMED, Slot
from .weights import Softmax


@dataclass(frozen=True)
class Entry:
    """A named mechanism: its line, its source, and one sentence on what it does."""

    name: str
    line: str
    paper: str
    sentence: str
    specimen: bool = False

    @property
    def mechanism(self) -> Line:
        """The mechanism itself."""
        return parse_line(self.line)

    @property
    def slot(self) -> str:
        """The slot by which a list groups the entry: the rarest one that differs from the baseline."""
        mechanism = parse_line(self.line)
        if isinstance(mechanism, LayeredMechanism):
            return "layers"
        differing = {stage.slot for stage in mechanism.list_written_stages() if stage not in (Dot(), Softmax())}
        return next((slot for slot in GROUPS if slot in differing), "score")


GROUPS: tuple[Slot, ...] = (
    "kv_heads", "share", "drop", "heads", "delta", "forget", "features", "values", "output", "causal", "mask",
    "positions", "cap", "weights", "score",
)  # fmt: skip
"""The slots, rare ones first: an entry that differs in several belongs to the first of them."""

OURS = "attnlab"

ENTRIES = (
    Entry("baseline", "dot | softmax", "Vaswani et al. 2017, arXiv:1706.03762",
          "Scaled dot-product attention, the usual baseline."),
    Entry("additive", "additive | softmax", "Bahdanau et al. 2014, arXiv:1409.0473",
          "A small network scores each pair; sums that a dot product cannot express."),
    Entry("qk-norm", "cosine(scale=learned) | softmax", "Henry et al. 2020, arXiv:2010.04245",
          "Queries and keys of norm 1 with a learned scale per head: scores are bounded."),
    Entry("cosine", "cosine | softmax", OURS,
          "Cosine scores without a scale: weights within a factor e² of each other."),
    Entry("angle", "angle | softmax", OURS,
          "The angle instead of its cosine: the score is linear in the angle."),
    Entry("l2-attention", "euclidean | softmax", "Kim et al. 2020, arXiv:2006.04710",
          "Squared distance as score: near keys get the most weight, whatever their norm."),
    Entry("l1-attention", "manhattan | softmax", "after Brännvall 2023, arXiv:2310.02041",
          "Manhattan distance as score: additions only, no products."),
    Entry("chebyshev", "chebyshev | softmax", OURS,
          "The largest coordinate difference as score."),
    Entry("minkowski-learned", "minkowski(p=learned) | softmax", OURS,
          "Minkowski distance as score, with a p that each head learns."),
    Entry("softmax-off-by-one", "dot | softmax1", "Miller 2023, 'Attention is off by one'",
          "Weights may sum to less than 1, so that no attention sink is needed."),
    Entry("attention-sink", "dot | softmax(sink=learned)", "Agarwal et al. 2025, arXiv:2508.10925",
          "Each head learns the score of a sink, which takes weight and has no value."),
    Entry("scalable-softmax", "dot | ssmax", "Nakanishi 2025, arXiv:2501.19399",
          "Softmax sharpened with the logarithm of the length: weights do not flatten as it grows."),
    Entry("softpick", "dot | softpick", "Zuhri et al. 2025, arXiv:2504.20966",
          "A rectified softmax whose weights may all be 0: no sink is needed."),
    Entry("cog-attention", "dot | cog", "Lv et al. 2024, arXiv:2411.07176",
          "Softmax of the absolute scores with their signs: weights may be negative."),
    Entry("stick-breaking", "dot | stick_breaking", "Tan et al. 2024, arXiv:2410.17980",
          "The nearest key takes its share first, each earlier one a share of what is left."),
    Entry("soft-capped", "dot | cap(50) | softmax", "Riviere et al. 2024, arXiv:2408.00118",
          "Scores are bounded by a tanh, so that no weight saturates."),
    Entry("sigmoid-attention", "dot | sigmoid", "Ramapuram et al. 2024, arXiv:2409.04431",
          "An elementwise sigmoid with a bias of −log n instead of a normaliser."),
    Entry("relu-attention", "dot | relu(divide=n)", "Wortsman et al. 2023, arXiv:2309.08586",
          "ReLU divided by the visible length instead of softmax."),
    Entry("relu-cosine", "cosine | relu(divide=n)", OURS,
          "ReLU over cosine scores, divided by the visible length."),
    Entry("gelu-cosine", "cosine | gelu(divide=n)", OURS,
          "GELU over cosine scores, divided by the visible length: a smooth ReLU."),
    Entry("sparsemax", "dot | sparsemax", "Martins & Astudillo 2016, arXiv:1602.02068",
          "Weights with exact zeros: the projection onto the simplex."),
    Entry("entmax", "dot | entmax15", "Peters et al. 2019, arXiv:1905.05702",
          "Between softmax and sparsemax: sparse and smooth."),
    Entry("linear", "dot | identity(divide=n)", "after Katharopoulos et al. 2020, arXiv:2006.16236",
          "Scores as weights, no feature map: linear in the length."),
    Entry("cosine-linear", "cosine | identity(divide=n)", OURS,
          "Cosine scores as weights, divided by the visible length: linear in the length."),
    Entry("cottention", "cosine | identity(divide=learned)", "Mongaras et al. 2024, arXiv:2409.18747",
          "Cosine scores as weights, divided by a learned power of the length: linear in the length."),
    Entry("linear-attention", "dot | identity(divide=sum) | feature(elu1)",
          "Katharopoulos et al. 2020, arXiv:2006.16236",
          "Positive features of queries and keys, and weights divided by their sum: linear in the length."),
    Entry("taylor-linear", "dot | identity(divide=sum) | feature(taylor)", "Arora et al. 2024, arXiv:2402.18668",
          "Features whose dot product is the Taylor polynomial of e^s: close to softmax, linear in the length."),
    Entry("retention", "dot | identity | forget(rate=retention) | head_norm", "Sun et al. 2023, arXiv:2307.08621",
          "Linear attention whose past fades at a fixed rate per head."),
    Entry("gated-linear", "dot | identity | forget(per=channel) | head_norm", "Yang et al. 2023, arXiv:2312.06635",
          "Linear attention whose past fades by a gate per channel, computed from the layer's input."),
    Entry("scalar-gated-linear", "dot | identity | forget | head_norm", "after Dao & Gu 2024, arXiv:2405.21060",
          "Linear attention with one forget gate per head: the scalar form of Mamba-2."),
    Entry("forgetting", "dot | softmax | forget", "Lin et al. 2025, arXiv:2503.02130",
          "Softmax whose scores lose the logarithm of a forget gate with every token in between."),
    Entry("delta-net", "dot(scale=1) | identity | norm(l2) | delta | head_norm", "Yang et al. 2024, arXiv:2406.06484",
          "Linear attention that writes the difference from what its keys already recall."),
    Entry("gated-delta-net", "dot(scale=1) | identity | forget | norm(l2) | delta | head_norm | gate(per=channel)",
          "Yang et al. 2024, arXiv:2412.06464",
          "The delta rule with a forget gate per head, and a gated output."),
    Entry("hard", "dot | argmax", OURS,
          "All weight on the best key; queries and keys get no gradient.", specimen=True),
    Entry("hard-straight-through", "dot | argmax(straight_through=true)",
          "after Bengio et al. 2013, arXiv:1308.3432",
          "All weight on the best key; queries and keys get softmax's gradient."),
    Entry("sliding-window", "dot | softmax | window(64)", "Beltagy et al. 2020, arXiv:2004.05150",
          "A query sees the nearest tokens only: the cost grows with the length times the window."),
    Entry("gemma-hybrid", "dot | softmax | window(64) @ 0-4 every 6; dot | softmax @ 5 every 6",
          "Kamath et al. 2025, arXiv:2503.19786",
          "Five layers with a window, then one that sees everything, repeated."),
    Entry("qwen3-next-like",
          "dot(scale=1) | identity | forget | norm(l2) | delta | head_norm | gate(per=channel) | nope @ 0-2 every 4; "
          "dot | softmax | norm(rms, gain=channel) | gate(per=channel) | rope(share=0.25) @ 3 every 4",
          "after Qwen 2025, 'Qwen3-Next'",
          "Three layers of the gated delta rule, then one of gated softmax with positions, repeated."),
    Entry("chunked", "dot | softmax | chunk(64)", "after Qiu et al. 2019, arXiv:1911.02972",
          "A query sees the tokens of its own chunk only."),
    Entry("top-k", "dot | softmax | top_k(16)", "Gupta et al. 2021, arXiv:2106.06899",
          "Softmax over the largest scores of a row; all other weights are exactly 0."),
    Entry("no-positions", "dot | softmax | nope", "Kazemnejad et al. 2023, arXiv:2305.19466",
          "No positions: in a causal model order enters through the mask alone."),
    Entry("rope", "dot | softmax | rope", "Su et al. 2021, arXiv:2104.09864",
          "Queries and keys are rotated by their positions, so that scores depend on distances."),
    Entry("alibi", "dot | softmax | alibi", "Press et al. 2021, arXiv:2108.12409",
          "Scores fall with the distance, with a fixed slope per head."),
    Entry("relative-bias", "dot | softmax | relative", "Raffel et al. 2020, arXiv:1910.10683",
          "Each head learns a bias for each near distance, and for groups of far ones."),
    Entry("qk-rms-norm", "dot | softmax | norm(rms, gain=channel)", "Yang et al. 2025, arXiv:2505.09388",
          "Queries and keys divided by their root mean square, with a learned gain per channel, as in Qwen3."),
    Entry("shifted-keys", "dot | softmax | shift(keys)", OURS,
          "Half of each key comes from the token before, so that one layer finds what follows a token."),
    Entry("differential", "dot | softmax | differential", "Ye et al. 2024, arXiv:2410.05258",
          "The difference of two softmax maps for each pair of heads: common noise cancels."),
    Entry("talking-heads", "dot | softmax | talking_heads", "Shazeer et al. 2020, arXiv:2003.02436",
          "Heads mix their scores before softmax, and their weights after it."),
    Entry("value-bypass", "dot | softmax | bypass(alpha=0.5)", "Shin 2025",
          "The layer's input bypasses the value projection: V' = V + 0.5·ReLU(x)."),
    Entry("value-bypass-learned", "dot | softmax | bypass(alpha=0.5, learn=true, per=head)", "after Shin 2025",
          "Value bypass with an α that each head learns."),
    Entry("unit-values", "cosine | softmax | unit_values", OURS,
          "Queries, keys and values of norm 1."),
    Entry("value-residual", "dot | softmax | value_residual", "Zhou et al. 2024, arXiv:2410.17897",
          "Every layer mixes the first layer's values into its own."),
    Entry("value-embedding", "dot | softmax | value_embedding", "Jordan et al. 2024, 'modded-nanogpt'",
          "Every layer adds a learned vector of each token to its value."),
    Entry("output-gate", "dot | softmax | gate(per=channel)", "Qiu et al. 2025, arXiv:2505.06708",
          "A sigmoid gate on each channel of the output, computed from the layer's input."),
    Entry("exclusive", "dot | softmax | exclusive(alpha=1)", "Zhai 2026, arXiv:2603.09078",
          "The output without its part along the token's own value: what others say, not what it says itself."),
    Entry("output-penalty", "dot | softmax | penalize(output, 0.01)", OURS,
          "The mean square of the output is added to the loss."),
    Entry("token-dropout", "dot | softmax | token_dropout(0.1)", OURS,
          "During training, a tenth of the tokens cannot be attended to."),
    Entry("shared-qk", "dot | softmax | share(qk)", "Kitaev et al. 2020, arXiv:2001.04451",
          "Queries and keys from one projection: symmetric scores."),
    Entry("shared-qkv", "dot | softmax | share(qkv)", OURS,
          "One projection for queries, keys and values."),
    Entry("shared-kv", "dot | softmax | share(kv)", OURS,
          "Keys and values from one projection."),
    Entry("grouped-query", "dot | softmax | heads(kv=2)", "Ainslie et al. 2023, arXiv:2305.13245",
          "Two heads of keys and values, each for half of the query heads."),
    Entry("multi-query", "dot | softmax | heads(kv=1)", "Shazeer 2019, arXiv:1911.02150",
          "One head of keys and values for all query heads."),
    Entry("leaking-mask", "dot | softmax | mask(after)", OURS,
          "Future pairs set to 0 after softmax: the normaliser depends on the future.", specimen=True),
    Entry("zero-mask", "dot | softmax | mask(zero)", OURS,
          "Future pairs get the score 0: they still get weight.", specimen=True),
    Entry("undivided-linear", "dot | identity", OURS,
          "Scores as weights without a divisor: the output grows with the length.", specimen=True),
)  # fmt: skip

CATALOG: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in ENTRIES})
"""Every entry by its name."""

UNIFORM: Mapping[str, Mechanism] = MappingProxyType(
    {
        name: Mechanism.parse(entry.line)
        for name, entry in CATALOG.items()
        if not any(mark in entry.line for mark in LAYER_MARKS)
    }
)
"""The mechanism of every entry that has the same one in each layer, by its name."""

NAMED.update({entry.name: entry.line for entry in ENTRIES})
