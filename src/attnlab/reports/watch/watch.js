// Asks for the study's figures every other second and draws them. Text only ever becomes text, never markup.
"use strict";

const EVERY = 2000;
const NUM_COLOURS = 7;
const WIDEST = 560, HEIGHT = 260, LEFT = 56, RIGHT = 12, TOP = 10, BOTTOM = 38;
const WORDS = {
  preparing: "is being prepared: mechanisms are audited, runs are planned",
  stopped: "is stopped; the command that began it goes on with it",
};
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
  if (state.condition === "ended") return `This study has ended: ${ended}${lost}. Its verdicts: attnlab compare DIR.`;
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

function chartOf(title, runs, arms) {
  const width = Math.min(WIDEST, document.querySelector("main").clientWidth);
  const points = runs.flatMap((run) => run.curve), losses = points.map((point) => point[1]);
  const last = Math.max(...points.map((point) => point[0])), low = Math.min(...losses), high = Math.max(...losses);
  const across = (step) => LEFT + (width - LEFT - RIGHT) * step / last;
  const up = (loss) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (high > low ? (loss - low) / (high - low) : 0.5);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `Training loss, ${title}` });
  for (const tick of ticksOf(low, high)) {
    svg.append(draw("line", { x1: LEFT, x2: width - RIGHT, y1: up(tick), y2: up(tick), class: "grid" }));
    svg.append(draw("text", { x: LEFT - 8, y: up(tick) + 4, "text-anchor": "end" }, digits(tick)));
  }
  for (const tick of ticksOf(0, last)) {
    const anchor = across(tick) > width - 40 ? "end" : "middle";
    svg.append(draw("text", { x: across(tick), y: HEIGHT - BOTTOM + 16, "text-anchor": anchor }, whole(tick)));
  }
  svg.append(draw("text", { x: (LEFT + width) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "step"));
  for (const run of runs) {
    const path = run.curve.map(([step, loss]) => `${across(step).toFixed(1)},${up(loss).toFixed(1)}`).join(" ");
    const going = run.state === "running" ? " going" : "";
    const line = draw("polyline", { points: path, class: `line ${styleOf(run.arm, arms)}${going}` });
    line.append(draw("title", {}, run.title));
    svg.append(line);
  }
  const keys = arms.filter((arm) => runs.some((run) => run.arm === arm)).map((arm) => {
    const mark = draw("svg", { viewBox: "0 0 24 12", "aria-hidden": "true" });
    mark.append(draw("line", { x1: 0, x2: 24, y1: 6, y2: 6, class: `line ${styleOf(arm, arms)}` }));
    return make("span", "key", mark, make("span", "", arm));
  });
  return make("figure", "", make("h3", "", title), svg, make("figcaption", "", ...keys));
}

function chartsOf(state) {
  const arms = [...new Set(state.runs.map((run) => run.arm))], parts = new Map();
  for (const run of state.runs.filter((one) => one.curve.length)) {
    const title = `${run.phase}, ${run.size}`;
    parts.set(title, [...(parts.get(title) || []), run]);
  }
  return [...parts].map(([title, runs]) => chartOf(title, runs, arms));
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
  place("report").hidden = !(state.condition === "ended" && state.has_report);
  place("so-far").textContent = state.condition === "ended" ? "means alone; verdicts: attnlab compare DIR" : state.so_far;
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
