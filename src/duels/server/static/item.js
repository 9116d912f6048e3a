/** One item: edit, replace, remove. */

import { at, call } from "./api.js";
import { lines, textOf } from "./files.js";
import { onClick, onForm, place, study } from "./manage.js";
import { attempt, confirmed, element } from "./ui.js";
import { Told } from "./words.js";

const KINDS = ["text", "markdown", "code", "html"];
const MOST_FIELDS = 20; // of arms without an output
const number = place("item-panel").dataset.number;
const pages = `/studies/${encodeURIComponent(study)}/items`;
let stored = { prompt: "", outputs: {} };

/** What was typed; or what is stored if nothing was changed, since a field has other line breaks. */
const typed = (text, before) => (text.replace(/\r\n?/g, "\n") === before.replace(/\r\n?/g, "\n") ? before : text);

/** The fields for one output: its kind and its text. Images stay as they are. */
function field(arm, output, place) {
  const id = `edit-output-${place}`;
  if (output.kind === "image") return element("p", { class: "soft field" }, `The image of ${arm} stays. To change it, replace the item by a file.`);
  const text = element("textarea", { id, rows: "5", dir: "auto", "data-arm": arm });
  text.value = output.content;
  if (!(arm in stored.outputs)) text.placeholder = "no output yet";
  const kinds = element("select", { id: `${id}-kind` }, ...KINDS.map((kind) => element("option", {}, kind)));
  kinds.value = output.kind;
  const label = element("label", { for: `${id}-kind` }, "Kind", element("span", { class: "unseen" }, ` of the output of ${arm}`));
  return element("div", { class: "field" }, element("label", { for: id }, `Output of ${arm}`), element("div", { class: "kind" }, label, kinds), text);
}

/** A field for each output, and for each arm that has none. Its kind is by default that of the others. */
function fieldsOf(item) {
  const kind = Object.values(item.outputs).map((one) => one.kind).find((one) => KINDS.includes(one)) ?? "text";
  const lacking = JSON.parse(place("item-panel").dataset.arms).filter((arm) => !(arm in item.outputs));
  const missing = lacking.slice(0, MOST_FIELDS).map((arm) => [arm, { kind, content: "" }]);
  return [...Object.entries(item.outputs), ...missing].map(([arm, output], i) => field(arm, output, i));
}

function show(open) {
  place("edit-panel").hidden = !open;
  place("edit-item").setAttribute("aria-expanded", String(open));
  (open ? place("edit-prompt") : place("edit-item")).focus();
}

const CHANGED = "If people were asked about it, their answers stay, and the replacement gets a new number. This cannot be undone.";
const KEPT = {
  tags: { title: `Change the tags of item ${number}?`, words: "Voters never see tags, so it keeps its number and its answers.", button: "Change" },
  outputs: { title: `Add outputs to item ${number}?`, words: "What people saw stays as it is, so it keeps its number and its answers.", button: "Add" },
};

/** Replaces the item, after a question; `kept` says what is all that changes, if the item stays. */
async function replaceBy(body, kept) {
  const asked = KEPT[kept] ?? { title: `Replace item ${number}?`, words: CHANGED, button: "Replace" };
  if (!(await confirmed(asked))) return;
  const made = await call("PUT", at(study, "items", number), body);
  location.assign(`${pages}/${made.number}`);
}

onForm("edit-form", "edit-said", async (values) => {
  const outputs = { ...stored.outputs };
  for (const text of place("edit-outputs").querySelectorAll("textarea")) {
    const { arm } = text.dataset;
    const before = stored.outputs[arm];
    if (before || text.value) outputs[arm] = { kind: place(`${text.id}-kind`).value, content: typed(text.value, before?.content ?? "") };
  }
  const prompt = typed(values.get("prompt"), stored.prompt);
  const same = prompt === stored.prompt
    && Object.entries(stored.outputs).every(([arm, { kind, content }]) => kind === outputs[arm].kind && content === outputs[arm].content);
  const more = Object.keys(outputs).length > Object.keys(stored.outputs).length;
  await replaceBy(new Blob([JSON.stringify({ prompt, tags: lines(values.get("tags")), outputs })]), same && (more ? "outputs" : "tags"));
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
      stored = item;
      place("edit-prompt").value = item.prompt;
      place("edit-tags").value = item.tags.join("\n");
      place("edit-outputs").replaceChildren(...fieldsOf(item));
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
