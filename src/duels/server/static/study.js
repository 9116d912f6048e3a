/** A study's page, live: whenever the study has changed, at most once a second, take over what is different. */

import { draw } from "./charts.js";
import { at } from "./api.js";
import { pageNow, takeOver } from "./ui.js";

const PAUSE = 1000; // milliseconds between two looks
const study = document.getElementById("main").dataset.study;
const sign = document.getElementById("live");
let queue = Promise.resolve();
let last = 0; // when the page was looked at, and for how long
let took = 0;
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

/** Get the page as it is now and take it over; one after the other. */
export function refresh() {
  queue = queue.then(look);
  return queue;
}

async function look() {
  last = Date.now();
  try {
    const page = await pageNow();
    if (!page) return;
    announce(page);
    takeOver(page);
    await draw(charts());
    took = Date.now() - last;
    if (stream.readyState === EventSource.OPEN) show("live", "updates live");
  } catch {
    show("reconnecting", "reconnecting…");
    setTimeout(soon, 2 * PAUSE);
  }
}

/** Changes that come within a second are looked at together; where looking is slow, it is done less often. */
async function soon() {
  if (waiting) return;
  waiting = true;
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, last + Math.max(PAUSE, 3 * took) - Date.now())));
  waiting = false;
  await refresh();
}

/** To those who cannot see it: only what matters, not every vote. */
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
    if (stream.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    soon(); // finds out if the study is gone, or if one has to sign in again
    setTimeout(follow, 5 * PAUSE);
  });
}

follow();
draw(charts());
