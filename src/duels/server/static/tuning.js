/** The results of a study that tunes parameters: the best setting, the runner-up, and slices of the model. */

import { at } from "./api.js";
import { follow, results } from "./live.js";
import { copyText, element } from "./ui.js";
import { joinUnits } from "./words.js";

const { study, base } = document.getElementById("main").dataset; // a link to the results has an address of its own
const numbers = base ?? at(study, "results");
const place = (id) => document.getElementById(id);
const whole = (number) => number.toLocaleString("en");
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [320, 190, 42, 12, 10, 34]; // of a slice, and its margins
const ROW = 26; // height of a choice
const LONGEST = 18; // characters of a choice's name

let shown = JSON.parse(place("glance").textContent);
const framed = {}; // the settings that the frames show

function draw(glance) {
  shown = glance;
  place("headline").textContent = joinUnits(glance.headline);
  place("words").textContent = joinUnits(glance.words);
  if (place("next-words")) place("next-words").textContent = joinUnits(glance.next);
  place("answers").textContent = whole(glance.answers);
  if (place("open")) place("open").textContent = whole(glance.open);
  if (glance.answers) place("steps")?.remove();
  place("best-card").hidden = place("slices-card").hidden = !glance.best;
  if (!glance.best) return;
  place("level").textContent = joinUnits(`${Number((100 * glance.confidence).toPrecision(6))} %`);
  for (const which of ["setting", "runner_up"]) drawSetting(which, glance);
  place("slices").replaceChildren(...glance.parameters.map(slice));
}

function drawSetting(which, { best, frames, scripts }) {
  const [setting, src] = [best[which], frames?.[which]];
  const rows = shown.parameters.flatMap(({ name }) => [element("dt", {}, name), element("dd", {}, text(setting[name]))]);
  place(`${which}-values`).replaceChildren(...rows);
  const wanted = src ? JSON.stringify([setting, scripts]) : "";
  if (framed[which] === wanted) return; // a frame that shows it already is not loaded again
  framed[which] = wanted;
  const frame = place(`${which}-frame`);
  frame.hidden = !src;
  frame.replaceChildren();
  if (!src) return;
  frame.append(element("iframe", { sandbox: scripts ? "allow-scripts" : "", src, title: place(`${which}-title`).textContent }));
  if (!base) frame.append(element("a", { href: src, target: "_blank", rel: "noopener" }, "Open full size"));
}

function text(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);
}

/** A number with few digits, for an axis. */
function short(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(3))) : String(value);
}

const percent = (part) => joinUnits(`${Math.round(100 * part)} %`);

/** An SVG element; classes instead of styles, which the content security policy forbids in markup. */
function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const across = (part) => LEFT + part * (WIDTH - LEFT - RIGHT);
const up = (part) => HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);

function slice(parameter) {
  const caption = element("figcaption", {}, parameter.name);
  if (parameter.log) caption.append(element("span", { class: "soft" }, " (logarithmic scale)"));
  const figure = element("figure", {}, caption);
  figure.append(parameter.kind === "number" ? curve(parameter) : choices(parameter));
  return figure;
}

/** In words what a slice shows, for those who do not see it. */
function label(parameter, places) {
  const said = places.map((k) => `${short(parameter.values[k])}: ${percent(parameter.share[k])} (${percent(parameter.share_lower[k])} to ${percent(parameter.share_upper[k])})`);
  return `${parameter.name}, best ${short(parameter.best)}. Predicted share of wins against the best setting. ${said.join(", ")}.`;
}

function curve(parameter) {
  const { values, share, share_lower: lower, share_upper: upper, half_lower: near, half_upper: far, low, high, best } = parameter;
  const scale = parameter.log ? Math.log : Number;
  const x = (value) => across(high > low ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : 0.5);
  const path = (ys, order = values.keys()) => [...order].map((k) => `${x(values[k]).toFixed(1)} ${up(ys[k]).toFixed(1)}`).join("L");
  const last = values.length - 1;
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label(parameter, [0, Math.floor(last / 2), last]) });
  for (const part of [0, 0.5, 1]) {
    drawn.append(svg("line", { class: part === 0.5 ? "half" : "grid", x1: across(0), x2: across(1), y1: up(part), y2: up(part) }));
    drawn.append(svg("text", { x: LEFT - 5, y: up(part) + 4, "text-anchor": "end" }, percent(part)));
  }
  const back = [...values.keys()].reverse();
  drawn.append(svg("path", { class: "band", d: `M${path(upper)}L${path(lower, back)}Z` }));
  drawn.append(svg("path", { class: "band", d: `M${path(far)}L${path(near, back)}Z` }));
  drawn.append(svg("path", { class: "line", d: `M${path(share)}` }));
  drawn.append(svg("line", { class: "here", x1: x(best), x2: x(best), y1: up(0), y2: up(1) }));
  drawn.append(svg("circle", { class: "best", cx: x(best), cy: up(0.5), r: 4 }));
  drawn.append(svg("text", { x: across(0), y: HEIGHT - 20, "text-anchor": "start" }, short(low)));
  drawn.append(svg("text", { x: across(1), y: HEIGHT - 20, "text-anchor": "end" }, short(high)));
  const at = Math.min(Math.max(x(best), LEFT + 30), WIDTH - RIGHT - 30);
  drawn.append(svg("text", { class: "best", x: at, y: HEIGHT - 6, "text-anchor": "middle" }, `best ${short(best)}`));
  return drawn;
}

function choices(parameter) {
  const { values, share, share_lower: lower, share_upper: upper, half_lower: near, half_upper: far, best } = parameter;
  const [top, from] = [18, 112];
  const height = top + ROW * values.length + 4;
  const x = (part) => from + part * (WIDTH - from - RIGHT);
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label(parameter, [...values.keys()]) });
  for (const part of [0, 0.5, 1]) {
    drawn.append(svg("line", { class: part === 0.5 ? "half" : "grid", x1: x(part), x2: x(part), y1: top, y2: height }));
    drawn.append(svg("text", { x: x(part), y: 12, "text-anchor": part === 1 ? "end" : "middle" }, percent(part)));
  }
  values.forEach((value, k) => {
    const y = top + ROW * (k + 0.5);
    const mine = value === best;
    const name = String(value).length > LONGEST ? `${String(value).slice(0, LONGEST - 1)}…` : String(value);
    drawn.append(svg("text", { class: mine ? "best" : "", x: from - 8, y: y + 4, "text-anchor": "end" }, name));
    for (const [start, end] of mine ? [] : [[lower, upper], [near, far]]) {
      drawn.append(svg("line", { class: "interval", x1: x(start[k]), x2: x(end[k]), y1: y, y2: y }));
    }
    drawn.append(svg("circle", { class: mine ? "best" : "", cx: x(share[k]), cy: y, r: 4 }));
  });
  return drawn;
}

async function update() {
  const glance = await results(numbers, Boolean(base));
  if (glance.seq < shown.seq) return;
  const before = shown.headline;
  draw(glance);
  if (before !== glance.headline) place("news").textContent = glance.headline;
}

place("best-card").addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const which = button.dataset.copy;
  const names = shown.parameters.map((one) => one.name); // in the order of the space
  copyText(button, JSON.stringify(shown.best[which], names), place(`${which}-values`));
});
draw(shown);
follow(study, String(shown.seq), update, base ? `${base}/stream` : undefined);
