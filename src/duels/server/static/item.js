/** One item: edit, replace, remove. */

import { at, call } from "./api.js";
import { lines, textOf } from "./files.js";
import { onClick, onForm, place, study } from "./manage.js";
import { attempt, confirmed, element } from "./ui.js";
import { Told } from "./words.js";

const KINDS = ["text", "markdown", "code", "html"];
const number = place("item-panel").dataset.number;
const pages = `/studies/${encodeURIComponent(study)}/items`;
let stored = { prompt: "", outputs: {} };

/** What was typed; or what is stored if nothing was changed, since a field has other line breaks. */
const typed = (text, before) => (text.replace(/\r\n?/g, "\n") === before.replace(/\r\n?/g, "\n") ? before : text);

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

const CHANGED = "If people were asked about it, their answers stay, and the replacement gets a number of its own. This cannot be undone.";
const ONLY_TAGS = "Voters never see tags, so it keeps its number and its answers.";

async function replaceBy(body, onlyTags = false) {
  const asked = onlyTags
    ? { title: `Change the tags of item ${number}?`, words: ONLY_TAGS, button: "Change" }
    : { title: `Replace item ${number}?`, words: CHANGED, button: "Replace" };
  if (!(await confirmed(asked))) return;
  const made = await call("PUT", at(study, "items", number), body);
  location.assign(`${pages}/${made.number}`);
}

onForm("edit-form", "edit-said", async (values) => {
  const outputs = { ...stored.outputs };
  for (const text of place("edit-outputs").querySelectorAll("textarea")) {
    const { arm } = text.dataset;
    outputs[arm] = { kind: place(`${text.id}-kind`).value, content: typed(text.value, stored.outputs[arm].content) };
  }
  const prompt = typed(values.get("prompt"), stored.prompt);
  const onlyTags = prompt === stored.prompt
    && Object.entries(outputs).every(([arm, { kind, content }]) => kind === stored.outputs[arm].kind && content === stored.outputs[arm].content);
  await replaceBy(new Blob([JSON.stringify({ prompt, tags: lines(values.get("tags")), outputs })]), onlyTags);
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
      place("edit-outputs").replaceChildren(...Object.entries(item.outputs).map(([arm, output], i) => field(arm, output, i)));
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
