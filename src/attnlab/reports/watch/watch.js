// Asks for the study's figures every other second and draws them. Text only ever becomes text, never markup.
"use strict";

const EVERY = 2000;
const NUM_COLOURS = 7;
const WIDEST = 560, HEIGHT = 260, LEFT = 56, RIGHT = 12, TOP = 10, BOTTOM = 38;
const WORDS = {
  preparing: "is being prepared: mechanisms are audited, runs are planned",
  stopped: "is stopped",
};
const USES = { ended: "Its verdicts:", stopped: "This command resumes it:" };
let lastAnswer = null;

const place = (id) => document.getElementById(id);

function make(tag, names, ...children) {
  const element = document.createElement(tag);
  if (names) element.className = names;
  element.append(...children.filter((child) => child !== ""));
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function inWords(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

const whole = (value) => value.toLocaleString("en");
const digits = (value) => (value === null ? "no number" : String(Number(value.toPrecision(4))));

function statusOf(state) {
  if (state.condition in WORDS && !state.num_runs) return `This study ${WORDS[state.condition]}.`;
  const ended = `${whole(state.num_ended)} of ${whole(state.num_runs)} runs have ended`;
  const lost = state.num_given_up ? `, ${whole(state.num_given_up)} were given up` : "";
  if (state.condition === "ended") return `This study has ended: ${ended}${lost}.`;
  if (state.condition === "stopped") return `${ended}${lost}. The study ${WORDS.stopped}.`;
  const going = state.runs.filter((run) => run.state === "running").length;
  const left = state.seconds_left === null ? "time left not yet known" : `about ${inWords(state.seconds_left)} left`;
  return `${ended}${lost}, ${whole(going)} going, ${left}.`;
}

function barOf(share) {
  const inner = make("div");
  inner.style.width = `${Math.min(100, 100 * share)}%`;
  return make("div", "bar", inner);
}

function evaluationOf(run) {
  const seen = run.evaluation;
  return seen === null ? "" : `${seen.name} ${digits(seen.value)} at step ${whole(seen.step)}`;
}

function stepOf(run) {
  return whole(run.step) + (run.num_steps === null ? "" : ` of ${whole(run.num_steps)}`);
}

const shareOf = (run) => (run.num_steps ? run.step / run.num_steps : 0);

function cardOf(run) {
  const facts = run.loss === null && !run.step ? ["starting"] : [
    `step ${stepOf(run)}`,
    `loss ${digits(run.loss)}`,
    run.tokens_per_second === null ? "" : `${whole(Math.round(run.tokens_per_second))} tokens/s`,
    run.seconds_left === null ? "" : `${inWords(run.seconds_left)} left`,
    evaluationOf(run),
  ];
  const spans = facts.filter((fact) => fact).map((fact) => make("span", "", fact));
  return make("div", "run", make("div", "title", run.title), barOf(shareOf(run)), make("div", "facts", ...spans));
}

function standingOf(standing, hasEnded) {
  const rows = standing.places.map((row) => make(
    "tr", row.arm === standing.leader && !hasEnded ? "ahead" : "", make("td", "", row.arm),
    make("td", "number", digits(row.mean)), make("td", "number", whole(row.num_seeds)),
  ));
  const head = make("tr", "", make("th", "", "arm"), make("th", "number", `mean ${standing.figure}`),
    make("th", "number", "seeds"));
  const apart = standing.apart.length
    ? make("p", "soft", `Not compared, since they see the future: ${standing.apart.join(", ")}.`) : "";
  return make("div", "standing", make("h3", "", `${standing.phase}, ${standing.size}`),
    make("table", "", make("thead", "", head), make("tbody", "", ...rows)), apart);
}

function styleOf(arm, arms) {
  const number = arms.indexOf(arm), round = Math.floor(number / NUM_COLOURS) % 3;
  return `colour-${number % NUM_COLOURS}${["", " dashed", " dotted"][round]}`;
}

function ticksOf(low, high) {
  const span = high - low || Math.abs(high) || 1, rough = span / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step); tick * step <= high + step * 1e-9; tick++) ticks.push(tick * step);
  return ticks;
}

// Perplexities span orders of magnitude; the positions of a logarithmic axis are those of the logarithms.
const logOf = (curves) => curves.figure.includes("perplexity") && curves.values.every((value) => value > 0);

function logTicksOf(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const factor of [1, 2, 5]) ticks.push(factor * 10 ** power);
  }
  const inside = ticks.filter((tick) => tick >= low && tick <= high);
  return inside.length > 1 ? inside : ticksOf(low, high);
}

function axesOf(curves, width) {
  const low = Math.min(...curves.values), high = Math.max(...curves.values), isLog = logOf(curves);
  const into = isLog ? Math.log : (value) => value;
  const share = (value) => (high > low ? (into(value) - into(low)) / (into(high) - into(low)) : 0.5);
  return {
    ticks: isLog ? logTicksOf(low, high) : ticksOf(low, high),
    across: (step) => LEFT + (width - LEFT - RIGHT) * step / curves.last,
    up: (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share(value),
  };
}

function lineOf(run, points, style, axes, hasDots) {
  const places = points.map(([step, value]) => [axes.across(step).toFixed(1), axes.up(value).toFixed(1)]);
  const group = draw("g", { class: `line ${style}${run.state === "running" ? " going" : ""}` });
  group.append(draw("title", {}, run.title));
  group.append(draw("polyline", { points: places.map((place) => place.join(",")).join(" ") }));
  if (hasDots) {
    for (const [x, y] of places) group.append(draw("circle", { cx: x, cy: y, r: 2.5, class: `dot ${style}` }));
  }
  return group;
}

function keysOf(runs, arms) {
  return arms.filter((arm) => runs.some((run) => run.arm === arm)).map((arm) => {
    const mark = draw("svg", { viewBox: "0 0 24 12", "aria-hidden": "true" });
    mark.append(draw("line", { x1: 0, x2: 24, y1: 6, y2: 6, class: `line ${styleOf(arm, arms)}` }));
    return make("span", "key", mark, make("span", "", arm));
  });
}

function chartOf(title, curves, arms) {
  const width = Math.min(WIDEST, document.querySelector("main").clientWidth), axes = axesOf(curves, width);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": title });
  for (const tick of axes.ticks) {
    svg.append(draw("line", { x1: LEFT, x2: width - RIGHT, y1: axes.up(tick), y2: axes.up(tick), class: "grid" }));
    svg.append(draw("text", { x: LEFT - 8, y: axes.up(tick) + 4, "text-anchor": "end" }, digits(tick)));
  }
  for (const tick of ticksOf(0, curves.last)) {
    const anchor = axes.across(tick) > width - 40 ? "end" : "middle";
    svg.append(draw("text", { x: axes.across(tick), y: HEIGHT - BOTTOM + 16, "text-anchor": anchor }, whole(tick)));
  }
  svg.append(draw("text", { x: (LEFT + width) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "step"));
  for (const [run, points] of curves.lines) {
    svg.append(lineOf(run, points, styleOf(run.arm, arms), axes, curves.hasDots));
  }
  const keys = keysOf(curves.lines.map(([run]) => run), arms);
  return make("figure", "", make("h3", "", title), svg, make("figcaption", "", ...keys));
}

function curvesOf(figure, lines, last, hasDots) {
  return { figure, lines, last, hasDots, values: lines.flatMap(([, points]) => points.map((point) => point[1])) };
}

// Of each phase and size: the loss of updates, and beside it the metric of evaluations, over the same steps.
function chartsOf(state) {
  const arms = [...new Set(state.runs.map((run) => run.arm))], parts = new Map();
  for (const run of state.runs.filter((one) => one.curve.length || one.held_out.length)) {
    const title = `${run.phase}, ${run.size}`;
    parts.set(title, [...(parts.get(title) || []), run]);
  }
  return [...parts].flatMap(([title, runs]) => {
    const trained = runs.filter((run) => run.curve.length).map((run) => [run, run.curve]);
    const heldOut = runs.filter((run) => run.held_out.length).map((run) => [run, run.held_out]);
    const last = Math.max(...[...trained, ...heldOut].flatMap(([, points]) => points.map((point) => point[0])));
    const named = heldOut.find(([run]) => run.evaluation !== null);
    const figure = named ? named[0].evaluation.name : "metric";
    return [
      trained.length ? chartOf(`${title}: training loss`, curvesOf("loss", trained, last, false), arms) : null,
      heldOut.length
        ? chartOf(`${title}: ${figure} on held-out data`, curvesOf(figure, heldOut, last, true), arms) : null,
    ].filter((chart) => chart !== null);
  });
}

function rowOf(run) {
  const step = run.step ? stepOf(run) : "", loss = run.loss === null ? "" : digits(run.loss);
  const row = make("tr", "", make("td", "", run.title), make("td", "", run.state), make("td", "number", step),
    make("td", "number", loss), make("td", "", evaluationOf(run)));
  if (step) row.children[2].dataset.label = "step";
  if (loss) row.children[3].dataset.label = "loss";
  return row;
}

function fill(id, elements) {
  place(id).replaceChildren(...elements);
  place(`${id}-part`).hidden = !elements.length;
}

function show(state) {
  document.title = `${state.num_ended}/${state.num_runs} ${state.name}`;
  place("name").textContent = state.name;
  place("question").textContent = state.question;
  place("status").textContent = statusOf(state);
  const done = state.num_ended + state.runs.reduce((sum, run) => sum + (run.state === "running" ? shareOf(run) : 0), 0);
  place("whole").replaceChildren(barOf(state.num_runs ? done / state.num_runs : 0));
  place("command-part").hidden = !state.command;
  place("command-use").textContent = USES[state.condition] || "If it is stopped, this command resumes it:";
  place("command").textContent = state.command;
  place("report").hidden = !(state.condition === "ended" && state.has_report);
  place("so-far").textContent = state.condition === "ended" ? "means alone; the command above prints the verdicts" : state.so_far;
  place("left-out").hidden = !state.num_curves_left_out;
  place("left-out").textContent = `${whole(state.num_curves_left_out)} curves are left out, of runs planned earlier.`;
  fill("going", state.runs.filter((run) => run.state === "running").map(cardOf));
  fill("standings", state.standings.map((one) => standingOf(one, state.condition === "ended")));
  fill("curves", chartsOf(state));
  fill("runs", state.runs.map(rowOf));
}

function complain(reason) {
  const since = lastAnswer === null ? "" : ` This is how things stood at ${lastAnswer.toLocaleTimeString()}.`;
  place("trouble").textContent = reason + since;
}

async function ask() {
  try {
    const answer = await fetch("state.json", { cache: "no-store" });
    return [answer.ok, await answer.json()];
  } catch {
    return [false, { trouble: "attnlab watch does not answer; was it ended?" }];
  }
}

async function renew() {
  const [isGood, state] = await ask();
  setTimeout(renew, EVERY);
  place("trouble").hidden = isGood;
  if (isGood) {
    lastAnswer = new Date();
    show(state);
  } else {
    complain(state.trouble);
  }
}

renew();
