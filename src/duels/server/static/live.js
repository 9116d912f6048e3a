/** Follows the changes of a study, and shows whether they arrive. */

import { ApiError, at, call } from "./api.js";

const PAUSE = 1000; // milliseconds between two updates
const sign = document.getElementById("live");

/** Says on paper when it was printed. */
addEventListener("beforeprint", () => {
  const now = new Date().toLocaleString("en", { dateStyle: "long", timeStyle: "short" });
  document.getElementById("as-of").textContent = `As of ${now}`;
});

export function show(state, words) {
  if (sign.dataset.state === state) return;
  sign.dataset.state = state;
  sign.textContent = words;
}

/** Gets the results of a study, or of a link to them. Goes elsewhere if they are gone, or the session has ended. */
export async function results(address, isLink) {
  try {
    return await call("GET", address);
  } catch (error) {
    const status = error instanceof ApiError ? error.status : 0;
    if (isLink && status === 404) location.reload(); // says that the link has ended
    if (!isLink && status === 401) location.assign("/signin");
    if (!isLink && status === 404) location.assign("/");
    throw error;
  }
}

/**
 * Calls `update` after changes: at most once a second, one call after the other, and less often if calls are slow.
 * `seen` is the number of the event that the page shows, `address` that of the stream. Returns a function that updates now.
 */
export function follow(study, seen, update, address = at(study, "stream")) {
  let queue = Promise.resolve();
  let [last, took, waiting, stream] = [0, 0, false, null];
  let state; // what the stream said last

  async function run() {
    last = Date.now();
    try {
      await update();
      took = Date.now() - last;
      if (stream?.readyState === EventSource.OPEN) show("live", "updates live");
    } catch {
      show("reconnecting", "reconnecting…");
      setTimeout(soon, 2 * PAUSE);
    }
  }

  function now() {
    queue = queue.then(run);
    return queue;
  }

  async function soon() {
    if (waiting) return;
    waiting = true;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, last + Math.max(PAUSE, 3 * took) - Date.now())));
    waiting = false;
    await now();
  }

  function connect() {
    stream = new EventSource(address);
    stream.addEventListener("open", () => show("live", "updates live"));
    stream.addEventListener("change", (event) => {
      show("live", "updates live");
      // The end of a lease is no event of the study, and changes its state too. Links to results do not say the state.
      const now = event.data === "{}" ? null : `${event.lastEventId} ${event.data}`;
      if (state === undefined ? event.lastEventId !== seen : now === null || now !== state) soon();
      state = now;
    });
    stream.addEventListener("deleted", () => (study === undefined ? location.reload() : location.assign("/")));
    stream.addEventListener("bye", () => {
      show("reconnecting", "reconnecting…");
      soon(); // perhaps the session or the link has ended
    });
    stream.addEventListener("error", () => {
      show("reconnecting", "reconnecting…");
      if (stream.readyState !== EventSource.CLOSED) return; // the browser reconnects on its own
      soon(); // finds out whether the study was deleted or the session has ended
      setTimeout(connect, 5 * PAUSE);
    });
  }

  connect();
  return now;
}
