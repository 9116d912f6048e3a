/** The voters of a study: kept up to date, and how to withdraw the answers of one. */

import { at, call } from "./api.js";
import { follow } from "./live.js";
import { attempt, confirmed, fetchPage, replaceLive } from "./ui.js";

const place = (id) => document.getElementById(id);
const study = place("main").dataset.study;
const counted = (number) => `${number.toLocaleString("en")} answer${number === 1 ? "" : "s"}`;

const update = follow(study, undefined, async () => {
  const page = await fetchPage();
  if (page) replaceLive(page);
});

const PAUSE = 250; // milliseconds after the last key before a search
let waiting;
function find() {
  clearTimeout(waiting);
  const values = [...new FormData(place("find-voter"))].filter(([, value]) => value);
  const query = new URLSearchParams(values).toString();
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
  return update();
}
place("find-voter")?.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(find, PAUSE);
});
place("find-voter")?.addEventListener("submit", (event) => {
  event.preventDefault();
  find();
});

place("main").addEventListener("click", async (event) => {
  const button = event.target.closest("[data-withdraw]");
  if (!button) return;
  const voter = button.dataset.withdraw;
  const words =
    `${counted(Number(button.dataset.answers))} of ${voter} will no longer count. This cannot be undone. ` +
    "You may have seen results, so after this nothing is promised about errors of the verdict. The page says so, " +
    "and who did it is noted under Settings. Answers that this voter gives later count again.";
  place("voters-done").textContent = "";
  if (!(await confirmed({ title: `Withdraw the answers of ${voter}?`, words, button: "Withdraw" }))) return;
  await attempt(button, place("voters-said"), async () => {
    const taken = await call("POST", at(study, "voters", "withdraw"), { voter });
    await update();
    place("voters-done").textContent = `${counted(taken.answers)} of ${voter} ${taken.answers === 1 ? "was" : "were"} withdrawn.`;
    place("voters-scroll")?.focus({ preventScroll: true });
  });
});
