/** One item: edit, replace, remove. */

import { at, call } from "./api.js";
import { lines, textOf } from "./files.js";
import { onClick, onForm, place, study } from "./manage.js";
import { attempt, confirmed, element } from "./ui.js";
import { Told } from "./words.js";

const KINDS = ["text", "markdown", "code", "html"];
const number = place("item-panel").dataset.number;
const pages = `/studies/${encodeURIComponent(study)}/items`;
let outputs = {}; // as they are stored

/** The fields for one output: its kind and its text. Images stay as they are. */
function field(arm, output, place) {
  const id = `edit-output-${place}`;
  if (output.kind === "image") return element("p", { class: "soft field" }, `The image of ${arm} stays. To change it, replace the item by a file.`);
  const text = element("textarea", { id, rows: "5", "data-arm": arm });
  text.value = output.content;
  const kinds = element("select", { id: `${id}-kind` }, ...KINDS.map((kind) => element("option", {}, kind)));
  kinds.value = output.kind;
  const label = element("label", { for: `${id}-kind` }, "Kind", element("span", { class: "unseen" }, ` of the output of ${arm}`));
  return element("div", { class: "field" }, element("label", { for: id }, `Output of ${arm}`), element("div", { class: "kind" }, label, kinds), text);
}

function show(open) {
  place("edit-panel").hidden = !open;
  place("edit-item").setAttribute("aria-expanded", String(open));
  (open ? place("edit-prompt") : place("edit-item")).focus();
}

async function replaceBy(body) {
  const words = "If people were asked about it, their answers stay, and the replacement gets a number of its own. This cannot be undone.";
  if (!(await confirmed({ title: `Replace item ${number}?`, words, button: "Replace" }))) return;
  const made = await call("PUT", at(study, "items", number), body);
  location.assign(`${pages}/${made.number}`);
}

onForm("edit-form", "edit-said", async (values) => {
  const changed = { ...outputs };
  for (const text of place("edit-outputs").querySelectorAll("textarea")) {
    changed[text.dataset.arm] = { kind: place(`${text.id}-kind`).value, content: text.value };
  }
  const item = { prompt: values.get("prompt"), tags: lines(values.get("tags")), outputs: changed };
  await replaceBy(new Blob([JSON.stringify(item)]));
});

onForm("replace-form", "replace-said", async () => {
  const [file] = place("replace-file").files;
  if (!file) throw new Told("Choose a file first.");
  await textOf(file);
  await replaceBy(file);
});

onClick({
  "#edit-item": async (button) => {
    if (!place("edit-panel").hidden) return show(false);
    await attempt(button, place("item-said"), async () => {
      const item = await call("GET", at(study, "items", number));
      outputs = item.outputs;
      place("edit-prompt").value = item.prompt;
      place("edit-tags").value = item.tags.join("\n");
      place("edit-outputs").replaceChildren(...Object.entries(outputs).map(([arm, output], i) => field(arm, output, i)));
      show(true);
    });
  },
  "#edit-cancel": () => show(false),
  "#remove-item": async (button) => {
    const words = "Nobody will be asked about it again. The answers are kept and count. This cannot be undone.";
    if (!(await confirmed({ title: `Remove item ${number}?`, words, button: "Remove" }))) return;
    await attempt(button, place("item-said"), async () => {
      await call("DELETE", at(study, "items", number));
      location.assign(pages);
    });
  },
});
