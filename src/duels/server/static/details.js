/** Pairs, open questions and answers over time: fetched when somebody opens them, and after each vote while they are open. */

import { at, call } from "./api.js";
import { drawLines, element, localise } from "./ui.js";
import { joinUnits, percentOf, plainly } from "./words.js";

const place = (id) => document.getElementById(id);
const card = place("details-card"); // links to results have none
const { study } = document.getElementById("main").dataset;
const whole = (number) => number.toLocaleString("en");
const clock = (time) => element("time", { datetime: time, "data-local": "" }, time);
const [WIDTH, HEIGHT] = [600, 160];

export async function updateDetails() {
  if (!card?.open) return;
  try {
    draw(await call("GET", at(study, "details")));
    place("details-said").textContent = "";
  } catch (error) {
    place("details-said").textContent = plainly(error);
  }
}

function draw(found) {
  drawPairs(found);
  drawQuestions(found);
  drawOverTime(found.over_time);
  place("details").hidden = false;
}

function drawPairs({ pairs, pairs_met: met, pairs_total: total, confidence }) {
  const shown = pairs.length < met ? ` These ${whole(pairs.length)} have the most answers.` : "";
  const met_so_far = `${whole(met)} of ${whole(total)} ${total === 1 ? "pair has" : "pairs have"} met.${shown}`;
  const intervals = ` Intervals hold for all pairs together and whenever you look, with a confidence of ${Number((100 * confidence).toPrecision(6))} %.`;
  place("pairs-note").textContent = joinUnits(met_so_far + (met ? intervals : ""));
  place("pairs-scroll").hidden = met === 0;
  place("pairs").tBodies[0].replaceChildren(...pairs.map(pairRow));
}

/** The arm that wins more comes first. */
function pairRow(pair) {
  const turned = pair.estimate < 0.5;
  const [arm, other] = turned ? [pair.second, pair.first] : [pair.first, pair.second];
  const [won, lost] = turned ? [pair.losses, pair.wins] : [pair.wins, pair.losses];
  const [share, lower, upper] = turned ? [1 - pair.estimate, 1 - pair.upper, 1 - pair.lower] : [pair.estimate, pair.lower, pair.upper];
  const limits = joinUnits(`${percentOf(lower)} to ${percentOf(upper)} %${pair.certain ? ", certain" : ""}`);
  const interval = element("span", { class: "between" }, element("span", { class: "comma" }, ", "), limits);
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, element("bdi", {}, arm)),
    element("td", {}, element("bdi", {}, other)),
    element("td", { class: "n" }, whole(pair.duels)),
    ...[won, lost, pair.ties].map((number) => element("td", { class: "n count" }, whole(number))),
    element("td", { class: "n" }, joinUnits(`${percentOf(share)} %`), interval),
  );
}

function drawQuestions({ open, open_total: total }) {
  const shown = open.length < total ? `The newest ${whole(open.length)} of ${whole(total)}.` : "";
  place("questions-note").textContent = total ? shown : "No question is open.";
  place("questions-scroll").hidden = total === 0;
  place("questions").tBodies[0].replaceChildren(...open.map(questionRow));
  localise(place("questions"));
}

function questionRow(question) {
  const item = question.item ? element("a", { href: `/studies/${encodeURIComponent(study)}/items/${question.item}` }, String(question.item)) : "–";
  return element(
    "tr",
    {},
    element("th", { scope: "row", class: "n" }, whole(question.id)),
    element("td", {}, element("bdi", {}, question.left), ", ", element("bdi", {}, question.right)),
    element("td", { class: "n" }, item),
    element("td", {}, clock(question.time), question.waiting ? "" : ", no answer expected any more"),
  );
}

function drawOverTime(points) {
  if (!points.length) {
    place("over-time-note").textContent = "There are no answers yet.";
    place("over-time").replaceChildren();
    return;
  }
  const [[begin], [end, total]] = [points[0], points.at(-1)];
  const span = new Date(end) - new Date(begin) || 1;
  const x = (time) => (WIDTH * (new Date(time) - new Date(begin))) / span;
  const y = (answers) => HEIGHT * (1 - answers / total);
  const line = points.map(([time, answers], k) => (k ? `H${x(time).toFixed(1)}V${y(answers).toFixed(1)}` : `M0 ${HEIGHT}`)).join("");
  place("over-time-note").replaceChildren(`From 0 to ${whole(total)} answers, between `, clock(begin), " and ", clock(end), ".");
  localise(place("over-time-note"));
  place("over-time").replaceChildren(drawLines(place("over-time-note").textContent, WIDTH, HEIGHT, [[line, "line"]]));
}

card?.addEventListener("toggle", updateDetails);
