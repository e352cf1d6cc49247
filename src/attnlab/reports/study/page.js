(() => {
  "use strict";

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return "sort" in cell.dataset ? cell.dataset.sort : cell.textContent.trim();
  };

  // Cells without a value stay last, whichever way the others go.
  const compare = (first, second, isNumber, sign) => {
    if (first === "" || second === "") return (first === "") - (second === "");
    return sign * (isNumber ? Number(first) - Number(second) : first.localeCompare(second));
  };

  const sort = (table, column) => {
    const headers = [...table.tHead.rows[0].cells];
    const isAscending = headers[column].getAttribute("aria-sort") !== "ascending";
    headers.forEach((header) => header.removeAttribute("aria-sort"));
    headers[column].setAttribute("aria-sort", isAscending ? "ascending" : "descending");
    const isNumber = headers[column].classList.contains("number");
    const rows = [...table.tBodies[0].rows];
    rows.sort((one, two) => compare(valueOf(one, column), valueOf(two, column), isNumber, isAscending ? 1 : -1));
    table.tBodies[0].append(...rows);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(table, column));
      header.append(button);
    });
  }

  // The interpreter computes a chart's expressions without eval, which the page's policy forbids.
  const options = {
    ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: { disableDefaultStyle: true },
  };

  const draw = async (figure) => {
    const place = document.createElement("div");
    try {
      await vegaEmbed(place, JSON.parse(document.getElementById(figure.dataset.chart).textContent), options);
      figure.querySelector(".picture").replaceChildren(place);
      figure.dataset.drawn = "live";
    } catch (error) {
      figure.dataset.drawn = "still"; // the picture that came with the page stays
      console.error(error);
    }
  };

  // A chart comes alive when it is nearly in sight; until then its picture stands there.
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watcher.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "400px" });
  document.querySelectorAll("figure[data-chart]").forEach((figure) => watcher.observe(figure));
})();
