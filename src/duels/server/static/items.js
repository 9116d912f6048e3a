/** The items of a study: search, tags and order without leaving the page; uploads. */

import { at, call } from "./api.js";
import { textOf, watchFile } from "./files.js";
import { follow } from "./live.js";
import { count, onClick, onForm, place, refresh, study } from "./manage.js";
import { attempt, confirmed, say } from "./ui.js";
import { Told } from "./words.js";

const PAUSE = 250; // milliseconds after the last key before a search

place("live").hidden = false;
const update = follow(study, place("browse-panel").dataset.seq, async () => {
  await refresh();
  place("browse-panel").hidden = !place("clear-items");
});

/** Puts what is looked for into the address, so that it can be shared, and shows it. */
function find() {
  const values = [...new FormData(place("find"))].filter(([name, value]) => value && !(name === "order" && value === "number"));
  const query = new URLSearchParams(values).toString();
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
  return update();
}

let waiting;
place("find").addEventListener("input", (event) => {
  clearTimeout(waiting);
  waiting = setTimeout(find, event.target.id === "search" ? PAUSE : 0);
});
place("find").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(waiting);
  find();
});

watchFile(place("items-file"), place("items-kind"), place("items-kind-hint"), place("items-found"));

/** How many outputs of which arms the items lack, as text. */
function lacks(missing) {
  const arms = Object.entries(missing);
  const total = arms.reduce((sum, [, number]) => sum + number, 0);
  const named = arms.slice(0, 6).map(([arm, number]) => `${number.toLocaleString("en")} of ${arm}`);
  const more = arms.length > 6 ? `, and those of ${count(arms.length - 6, "more arm")}` : "";
  return total ? ` ${count(total, "output")} ${total === 1 ? "is" : "are"} missing: ${named.join(", ")}${more}.` : "";
}

onForm("new-items", "items-said", async (values) => {
  const input = place("items-file");
  if (!input.files.length) throw new Told("Choose a file first.");
  await textOf(input.files[0]);
  const made = await call("POST", `${at(study, "items")}?kind=${values.get("kind")}`, input.files[0]);
  input.value = "";
  place("items-found").replaceChildren();
  place("items-kind-hint").textContent = "";
  await update();
  const merged = made.outputs ? ` ${count(made.outputs, "output")} added to items that were there.` : "";
  const added = made.items || !made.outputs ? `${count(made.items, "item")} added, ${made.total.toLocaleString("en")} in total.` : "";
  say(place("items-said"), `${added}${merged}${lacks(made.missing)}`.trim());
});

onClick({
  "#clear-items": async (button) => {
    const asked = { title: "Remove all items?", words: "The answers are kept. This cannot be undone.", button: "Remove" };
    if (!(await confirmed(asked))) return;
    await attempt(button, place("items-said"), async () => {
      await call("DELETE", at(study, "items"));
      await update();
      say(place("items-said"), "All items were removed.");
      place("items-file").focus();
    });
  },
  "#set-scripts": async (button) => {
    const scripts = button.dataset.to === "on";
    const words = "Scripts in the outputs will run in the browsers of your voters. They can send what they see to other computers.";
    if (scripts && !(await confirmed({ title: "Turn scripts on?", words, button: "Turn on" }))) return;
    await attempt(button, place("scripts-said"), async () => {
      await call("POST", at(study, "scripts"), { scripts });
      await refresh();
      place("set-scripts").focus();
    });
  },
});
