"""What every construction shows in a notebook: its sentence, its query, its error and its figure."""

from torch import Tensor

from attnlab.charts import Spec, svg
from attnlab.kernels.rounding import is_rounding, show_residual
from attnlab.notebook import Facts, Showable

from .words import short

MAX_NUMBERS = 8


class Construction(Showable):
    """A result with a sentence (`str`) and a figure."""

    def figure(self) -> Spec:
        """Draw the result."""
        raise NotImplementedError

    def facts(self) -> Facts:
        """Return the sentence, the query if it is a single one, and the error."""
        query, error = getattr(self, "query", None), float(getattr(self, "error", 0.0))
        rows = [("error", show_residual(error))] if error == error else []
        if isinstance(query, Tensor) and query.dim() == 1:
            rows.insert(0, ("query", write_vector(query)))
        return Facts("", str(self), rows=rows, is_good=getattr(self, "feasible", None))

    def picture(self) -> str:
        """Return the figure as an SVG."""
        return svg(self.figure())


def write_vector(vector: Tensor) -> str:
    """Write the first numbers of a vector."""
    largest = float(vector.abs().max()) if len(vector) else 0.0
    numbers = ["0" if is_rounding(number, largest) else short(number) for number in vector[:MAX_NUMBERS].tolist()]
    more = f", … ({len(vector)} numbers)" if len(vector) > MAX_NUMBERS else ""
    return f"({', '.join(numbers)}{more})"
