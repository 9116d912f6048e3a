/** Keeps the page of a study up to date: when the study has changed, replaces what is different, at most once a second. */

import { draw } from "./charts.js";
import { at } from "./api.js";
import { fetchPage, replaceLive } from "./ui.js";

const PAUSE = 1000; // milliseconds between two updates
const study = document.getElementById("main").dataset.study;
const sign = document.getElementById("live");
let queue = Promise.resolve();
let last = 0; // when the last update began
let took = 0; // how long it took
let waiting = false;
let stream = null;

function show(state, words) {
  if (sign.dataset.state === state) return;
  sign.dataset.state = state;
  sign.textContent = words;
}

function charts() {
  return JSON.parse(document.getElementById("charts").textContent);
}

/** Gets the page again and replaces what is different; updates run one after the other. */
export function refresh() {
  queue = queue.then(update);
  return queue;
}

async function update() {
  last = Date.now();
  try {
    const page = await fetchPage();
    if (!page) return;
    announce(page);
    replaceLive(page);
    await draw(charts());
    took = Date.now() - last;
    if (stream.readyState === EventSource.OPEN) show("live", "updates live");
  } catch {
    show("reconnecting", "reconnecting…");
    setTimeout(soon, 2 * PAUSE);
  }
}

/** Changes within a second are handled by one update; if updates are slow, they are less frequent. */
async function soon() {
  if (waiting) return;
  waiting = true;
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, last + Math.max(PAUSE, 3 * took) - Date.now())));
  waiting = false;
  await refresh();
}

/** Announces a new leader or verdict to screen readers, not every vote. */
function announce(page) {
  const [before, after] = [document, page].map((one) => one.getElementById("verdict"));
  if (before.dataset.kind === after.dataset.kind && before.dataset.leader === after.dataset.leader) return;
  document.getElementById("news").textContent = page.getElementById("headline").textContent;
}

let seen = document.getElementById("facts").dataset.seq;

function follow() {
  stream = new EventSource(at(study, "stream"));
  stream.addEventListener("open", () => show("live", "updates live"));
  stream.addEventListener("change", (event) => {
    show("live", "updates live");
    if (event.lastEventId !== seen) soon();
    seen = event.lastEventId;
  });
  stream.addEventListener("deleted", () => location.assign("/"));
  stream.addEventListener("bye", () => show("reconnecting", "reconnecting…"));
  stream.addEventListener("error", () => {
    show("reconnecting", "reconnecting…");
    if (stream.readyState !== EventSource.CLOSED) return; // the browser reconnects on its own
    soon(); // finds out whether the study was deleted or the session has ended
    setTimeout(follow, 5 * PAUSE);
  });
}

follow();
draw(charts());
