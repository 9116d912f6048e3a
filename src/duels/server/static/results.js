/** The results of a study, drawn from a few numbers that arrive after each vote. */

import { at, call } from "./api.js";
import { follow, results } from "./live.js";
import { updateDetails } from "./details.js";
import { drawLines, element } from "./ui.js";
import { joinUnits, percentOf } from "./words.js";

const { study, base } = document.getElementById("main").dataset; // a link to the results has an address of its own
const numbers = base ?? at(study, "results");
const own = base ?? at(study);
const place = (id) => document.getElementById(id);
const whole = (number) => number.toLocaleString("en");
const NUMBERED = 12; // arms: with more, the cells of the map have no numbers
const FEW = 5; // answers: a cell with fewer is gray
const AGAIN = 15_000; // milliseconds until a forecast is looked at again
const SEARCHED = 15; // arms: with more, there is a field to search them

let shown = JSON.parse(place("glance").textContent);

function draw(glance) {
  shown = glance;
  place("verdict").dataset.kind = glance.verdict.kind;
  place("headline").textContent = joinUnits(glance.verdict.headline);
  place("evidence").textContent = joinUnits(glance.verdict.facts);
  place("words").textContent = joinUnits(glance.verdict.words);
  place("next-words").textContent = joinUnits(glance.next.words);
  drawForecast();
  if (place("open")) place("open").textContent = whole(glance.open);
  if (glance.answers && place("steps")) place("steps").remove();
  drawArms(glance);
  drawMap(glance.map);
}

/** When the answers will be there, or for how long there was none. It changes while nothing else does. */
function drawForecast() {
  const { until: time, last, quiet } = shown.next;
  const silence = last && quiet ? (Date.now() - new Date(last)) / 1000 : 0;
  place("next-until").textContent = silence && silence >= quiet ? idle(silence) : until(time);
}

function idle(seconds) {
  const minutes = Math.floor(seconds / 60);
  const [number, unit] = minutes < 120 ? [minutes, "minute"] : minutes < 48 * 60 ? [Math.floor(minutes / 60), "hour"] : [Math.floor(minutes / 1440), "day"];
  return `Nobody has voted for ${whole(number)}\u00a0${unit}${number === 1 ? "" : "s"}.`;
}

/** When the answers will be there at the present rate, in the reader's own time; nothing if that time has passed. */
function until(time) {
  const when = new Date(time ?? 0);
  const ahead = when - Date.now();
  if (ahead <= 0) return "";
  const today = when.toDateString() === new Date().toDateString();
  const clock = today || ahead < 20 * 3600 * 1000 ? { hour: "numeric", minute: "2-digit" } : {};
  const options = today ? clock : { weekday: "short", day: "numeric", month: "short", ...clock };
  const far = ahead > 300 * 24 * 3600 * 1000;
  const shown = when.toLocaleString("en", far ? { month: "long", year: "numeric" } : options).replaceAll(" ", "\u00a0");
  return `At the present rate that is until ${shown}.`;
}

function drawArms(glance) {
  const wanted = place("arms-search").value.trim().toLowerCase();
  const found = glance.arms.filter((arm) => arm.arm.toLowerCase().includes(wanted));
  place("arms-tools").hidden = glance.arms_total <= SEARCHED;
  place("arms").tBodies[0].replaceChildren(...found.map(armRow));
  const left = glance.arms_total - glance.arms.length;
  place("arms-more").textContent = left ? `${whole(left)} more arms${base ? "" : " are in the API"}.` : "";
  const ranked = glance.ranked[0].toUpperCase() + glance.ranked.slice(1);
  place("ranks").textContent = glance.ranks;
  place("ranked").textContent = glance.answers
    ? joinUnits(`${ranked}. Wins are the share of comparisons with the others that an arm is expected to win, with an interval of 95 % that holds, about, whenever you look. A rating is on the scale of Elo: 400 points are odds of 10 to 1.`)
    : "";
}

/** Roles are explicit, because on narrow screens the rows are laid out as grids, which have none. */
function armRow(arm) {
  const name = element("th", { scope: "row", role: "rowheader" }, element("span", { class: "name", dir: "auto" }, arm.arm));
  if (!arm.active) name.append(" ", element("span", { class: "chip quiet" }, "retired"));
  const row = element("tr", { role: "row", class: arm.active ? "" : "off" }, rankCell(arm), name);
  const share = element("td", { class: "share", role: "cell" });
  if (arm.share !== null) {
    const limited = arm.lower !== null;
    const interval = limited ? [bar("interval", 100 * arm.lower, 100 * (arm.upper - arm.lower))] : [];
    share.append(track(...interval, bar("dot", 100 * arm.share, 0)));
    share.append(element("span", { class: "figure" }, joinUnits(`${percentOf(arm.share)} %`)));
    if (limited) {
      const [comma, limits] = [element("span", { class: "comma" }, ", "), joinUnits(`${percentOf(arm.lower)} to ${percentOf(arm.upper)} %`)];
      share.append(element("span", { class: "between" }, comma, limits));
    }
  }
  const rating = cell(arm.rating === null ? "–" : whole(Math.round(arm.rating)), "n rating");
  row.append(share, rating, ...[arm.wins, arm.losses, arm.ties].map((number) => cell(whole(number), "n count")));
  return row;
}

/** A rank that may still change is pale, with a question mark. */
function rankCell(arm) {
  if (arm.rank === null || arm.certain) return cell(arm.rank ?? "–", "n");
  const made = cell(`${arm.rank}?`, "n unsure");
  made.title = "This rank is not certain.";
  return made;
}

function cell(text, kind) {
  return element("td", { class: kind, role: "cell" }, String(text));
}

function track(...parts) {
  return element("span", { class: "track", "aria-hidden": "true" }, ...parts);
}

/** Styles are set by script, since the content security policy forbids them in markup. */
function bar(kind, from, size) {
  const made = element("span", { class: kind });
  made.style.left = `${from}%`;
  if (size) made.style.width = `${size}%`;
  return made;
}

function drawMap(map) {
  const table = place("map");
  place("map-none").hidden = map.cells.length > 0;
  place("map-note").hidden = place("map-scroll").hidden = map.cells.length === 0;
  if (!map.cells.length) return;
  const focused = document.activeElement?.dataset?.pair;
  const all = new Map();
  for (const [i, j, won, lost, tied, certain] of map.cells) {
    all.set(`${i} ${j}`, { won, lost, tied, certain });
    all.set(`${j} ${i}`, { won: lost, lost: won, tied, certain: -certain });
  }
  const size = map.arms.length;
  table.classList.toggle("numbered", size <= NUMBERED);
  place("map-counts").hidden = size > NUMBERED;
  const head = element("tr", {}, element("td"));
  map.arms.forEach((name) => head.append(element("th", { scope: "col" }, element("span", { dir: "auto" }, name))));
  const rows = map.arms.map((name, i) => {
    const row = element("tr", {}, element("th", { scope: "row" }, element("bdi", {}, name)));
    for (let j = 0; j < size; j += 1) row.append(mapCell(map.arms, i, j, all.get(`${i} ${j}`), size));
    return row;
  });
  const shownAll = shown.arms_total <= size ? "" : `The ${size} best of ${whole(shown.arms_total)} arms.`;
  table.replaceChildren(element("caption", {}, shownAll), element("thead", {}, head), element("tbody", {}, ...rows));
  if (focused) table.querySelector(`[data-pair="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

function mapCell(names, i, j, pair, size) {
  if (i === j) return element("td", { class: "same" });
  if (!pair) return element("td", { class: "unmet" }, element("span", { class: "unseen" }, "have not met"));
  const met = pair.won + pair.lost + pair.tied;
  const share = (pair.won + pair.tied / 2) / met;
  const rounded = percentOf(share);
  const percent = `${rounded} %`;
  const sure = pair.certain === 0 ? "not certain" : "certain";
  const label = `${names[i]} wins ${percent} of ${whole(met)} against ${names[j]}, ${sure}`;
  const button = element("button", { type: "button", "aria-label": label, title: label, "data-pair": `${i} ${j}` });
  if (size <= NUMBERED) button.append(String(rounded), element("small", {}, whole(met)));
  const made = element("td", { class: met < FEW ? "few" : pair.certain === 0 ? "pale" : "sure" }, button);
  const shade = pair.certain === 0 ? (share * met + 2) / (met + 4) : share; // few answers are no strong color
  made.style.setProperty("--share", `${Math.round(100 * Math.abs(2 * shade - 1))}%`);
  made.dataset.side = share >= 0.5 ? "wins" : "loses";
  return made;
}

place("map").addEventListener("click", async (event) => {
  const button = event.target.closest("[data-pair]");
  if (!button) return;
  const [first, second] = button.dataset.pair.split(" ").map((k) => shown.map.arms[Number(k)]);
  try {
    drawPair(await call("GET", `${own}/pair?${new URLSearchParams({ first, second })}`));
  } catch (error) {
    place("pair").textContent = error.message;
  }
});

/** The share of wins of the first arm over time, as a line, with the counts as text. */
function drawPair(pair) {
  const [width, height] = [600, 160];
  const points = pair.history;
  const last = points.at(-1);
  const x = (answers) => (width * answers) / last.answers;
  const line = points.map((p, k) => `${k ? "L" : "M"}${x(p.answers).toFixed(1)} ${(height * (1 - p.share)).toFixed(1)}`).join("");
  const words = `${pair.first} won ${whole(pair.wins)}, ${pair.second} won ${whole(pair.losses)}, and ${whole(pair.ties)} were ties.`;
  const paths = [[`M0 ${height / 2}H${width}`, "half"], [line, "line"]];
  const svg = drawLines(`Share of wins of ${pair.first} over time. ${words}`, width, height, paths);
  const title = element("h3", {}, element("bdi", {}, pair.first), " against ", element("bdi", {}, pair.second));
  const interval = `${pair.first} wins between ${percentOf(pair.lower)} and ${percentOf(pair.upper)} % of such comparisons, with a confidence of ${Number((100 * pair.confidence).toPrecision(6))} %.`;
  const note = element("p", { class: "soft" }, joinUnits(`${words} ${interval} The line is the share of ${pair.first}, from 0 % at the bottom to 100 % at the top, after each answer.`));
  place("pair").replaceChildren(title, svg, note);
}

async function update() {
  const glance = await results(numbers, Boolean(base));
  if (glance.seq < shown.seq) return;
  const before = shown.verdict;
  draw(glance);
  // Screen readers hear of a new leader or verdict, not of every vote.
  if (before.kind !== glance.verdict.kind || before.leader !== glance.verdict.leader) {
    place("news").textContent = glance.verdict.headline;
  }
  await updateDetails();
}

place("arms-search").addEventListener("input", () => drawArms(shown));
draw(shown);
setInterval(drawForecast, AGAIN);
follow(study, String(shown.seq), update, `${own}/stream`);
