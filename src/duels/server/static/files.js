/** Reads files of items or arms, to show what is in them before they are sent. The server checks them. */

import { element } from "./ui.js";
import { plainly, Told } from "./words.js";

const TABLE = /\.(csv|tsv)$/i;

/** Returns the text of a file with items, votes or arms; throws an error with the reason if it cannot be used. */
export async function textOf(file) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new Told(`${file.name} is not UTF-8 text: save it as “CSV UTF-8” (that is its name in Excel) or as JSON lines.`);
  }
  if (!text.trim()) throw new Told(`${file.name} is empty.`);
  const header = text.trimStart().split("\n", 1)[0];
  if (TABLE.test(file.name) && header.includes(";") && !/[,\t]/.test(header)) {
    throw new Told(`${file.name} separates cells by semicolons: save it with commas, or as JSON lines.`);
  }
  return text;
}

/**
 * Returns what a file holds: its arms, and its items with a prompt, tags and outputs as { kind, content }; null for results of
 * promptfoo, which only the server reads. Throws an error with what was found and what is expected.
 */
export function readFound(name, text) {
  if (/\.txt$/i.test(name)) return { arms: lines(text), items: [] };
  if (TABLE.test(name)) return ofTable(name, table(text, /\.tsv$/i.test(name) ? "\t" : ","));
  if (/\.(json|jsonl|ndjson)$/i.test(name) || /^\s*[[{]/.test(text)) return ofObjects(name, text);
  throw new Told(`${name} has an unknown type: expected a name that ends in .csv, .jsonl or .txt.`);
}

const MARKS = /^(```|#{1,6} |[-*] |\d+\. )|\*\*\S[^*]*\*\*/m; // fences, headings, lists, bold
const SHARE = 0.1; // of the outputs that must have such marks, and two of them at least

/** Whether the outputs that do not state their kind look like Markdown. */
function looksLikeMarkdown(items) {
  const outputs = items.flatMap((item) => Object.values(item.outputs)).filter((one) => !one.kind && typeof one.content === "string");
  const marked = outputs.filter((one) => MARKS.test(one.content)).length;
  return marked >= 2 && marked >= SHARE * outputs.length;
}

/**
 * When a file is chosen, shows what was found in it, and puts Markdown into a select of kinds if its outputs look like it,
 * unless somebody has chosen a kind.
 */
export function watchFile(input, select, hint, place) {
  let chosen = false;
  select.addEventListener("change", () => {
    chosen = true;
    hint.textContent = "";
  });
  input.addEventListener("change", async () => {
    const [file] = input.files;
    let found = null;
    let shown = [];
    try {
      found = file ? readFound(file.name, await textOf(file)) : null;
      if (found) shown = describeFound(found);
    } catch (error) {
      shown = [element("p", { class: "said bad" }, plainly(error))];
    }
    if (file !== input.files[0]) return;
    place.replaceChildren(...shown);
    if (chosen) return;
    const marked = looksLikeMarkdown(found?.items ?? []);
    const { usual } = select.dataset; // of the outputs that are there: the sides of a question are shown alike
    select.value = marked ? "markdown" : (usual ?? "text");
    const alike = file && usual && usual !== "text" ? `They are shown like the outputs that are there: as ${usual}.` : "";
    hint.textContent = marked ? "These outputs look like Markdown, so they are shown as Markdown." : alike;
  });
}

const [ROWS, COLUMNS_SHOWN, CELL, TAGS_SHOWN] = [3, 4, 90, 8]; // of the table: items, arms, characters; and tags that are named
const counted = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
const cut = (text) => (text.length > CELL ? `${text.slice(0, CELL - 1)}…` : text);

/** What a file holds, as text, with a table of its first items. */
function describeFound({ arms, items }) {
  const tags = [...new Set(items.flatMap((item) => item.tags))];
  const lacking = items.reduce((sum, item) => sum + arms.length - Object.keys(item.outputs).length, 0);
  const facts = [counted(arms.length, "arm"), ...(items.length ? [counted(items.length, "item")] : [])];
  if (tags.length) facts.push(`${tags.length === 1 ? "tag" : "tags"} ${tags.slice(0, TAGS_SHOWN).join(", ")}${tags.length > TAGS_SHOWN ? ", …" : ""}`);
  if (lacking) facts.push(`${counted(lacking, "output")} missing`);
  const words = element("p", { class: "found-words" }, `Found: ${facts.join("; ")}.`);
  if (!items.length) return [words];
  const columns = arms.slice(0, COLUMNS_SHOWN);
  const more = arms.length > columns.length ? [`and ${counted(arms.length - columns.length, "more arm")}`] : [];
  const head = ["Prompt", ...columns, ...more].map((one) => element("th", { scope: "col" }, element("bdi", {}, one)));
  const rows = items.slice(0, ROWS).map((item) => element("tr", {},
    element("th", { scope: "row", dir: "auto" }, cut(item.prompt)),
    ...columns.map((arm) => element("td", { dir: "auto" }, shownOutput(item.outputs[arm]))),
    ...more.map(() => element("td", {}, "…"))));
  const sheet = element("table", {}, element("caption", { class: "unseen" }, "The first items of the file"),
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
  const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The first items of the file" }, sheet);
  return items.length > ROWS ? [words, scroll, element("p", { class: "hint" }, `The first ${ROWS} of ${counted(items.length, "item")}.`)] : [words, scroll];
}

function shownOutput(output) {
  if (output === undefined) return element("span", { class: "soft" }, "none");
  if (output.kind === "image" || String(output.content).startsWith("data:image/")) return element("span", { class: "soft" }, "a picture");
  return cut(String(output.content));
}

export function lines(text) {
  return text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
}

/** The first arm that occurs twice. */
export function repeated(arms) {
  return arms.find((arm, i) => arms.indexOf(arm) < i);
}

function ofObjects(name, text) {
  const found = objects(name, text);
  if (found === null) return null;
  const items = found.filter((item) => item?.outputs && typeof item.outputs === "object").map(ofObject);
  const arms = [...new Set(items.flatMap((item) => Object.keys(item.outputs)))];
  if (arms.length) return { arms, items };
  const keys = [...new Set(found.flatMap((item) => (item && typeof item === "object" ? Object.keys(item) : [])))];
  const fields = keys.length ? `objects with the fields ${keys.slice(0, 8).join(", ")}${keys.length > 8 ? ", …" : ""}` : "no objects";
  throw new Told(`${name} has ${fields}. Expected are the fields prompt and outputs, as in {"prompt": "2 + 2?", "outputs": {"first": "4", "second": "four"}}, with an output of each arm.`);
}

function ofObject({ prompt, query, outputs, kind, tags, category }) {
  const given = Object.entries(outputs).filter(([, one]) => one !== null);
  return {
    prompt: String(prompt ?? query ?? ""),
    tags: Array.isArray(tags) ? tags.map(String) : splitTags(tags ?? "").concat(tags === undefined && category ? [String(category)] : []),
    outputs: Object.fromEntries(given.map(([arm, one]) => [arm, { kind: one.kind || kind, content: one.content ?? one }])),
  };
}

/** The objects of a file; null for results of promptfoo. */
function objects(name, text) {
  if (text.trimStart().startsWith("[")) return json(name, text);
  if (/\.json$/i.test(name)) {
    const whole = json(name, text.trim(), true);
    if (whole !== null) return whole.results && !whole.outputs ? null : [whole];
  }
  return text.split("\n").flatMap((line, i) => (line.trim() ? [json(`${name}, line ${i + 1},`, line)] : []));
}

function json(place, text, orNull = false) {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (orNull) return null;
    throw new Told(`${place} is not JSON: ${error.message}.`);
  }
}

const splitTags = (text) => String(text).split(/[,;|]/).map((tag) => tag.trim()).filter(Boolean);

/** A row per prompt, with a column per arm; or a row per output. What columns are called is for the server to say. */
function ofTable(name, rows) {
  const known = new Map(Object.entries(JSON.parse(document.querySelector("[data-columns]").dataset.columns)));
  const header = (rows[0] ?? []).map((cell) => cell.trim());
  let roles = header.map((cell) => known.get(cell.toLowerCase()) ?? "");
  const byOutput = roles.includes("arm") && roles.includes("output");
  if (!byOutput) roles = roles.map((role) => (["arm", "output"].includes(role) ? "" : role)); // a model may be called answer
  const at = (role) => roles.indexOf(role);
  if (at("prompt") < 0) throw new Told(`${name}: the columns are ${header.slice(0, 8).join(", ")}. Expected is a column prompt, and one for each arm.`);
  const names = header.filter((cell, i) => cell && !roles[i]);
  const items = new Map();
  rows.slice(1).forEach((row, i) => {
    const cell = (role) => (at(role) < 0 ? "" : (row[at(role)] ?? ""));
    const prompt = cell("prompt");
    const key = byOutput ? prompt : i;
    const item = items.get(key) ?? { prompt, tags: [], outputs: Object.create(null) }; // an arm may be called __proto__
    items.set(key, item);
    item.tags.push(...(at("tags") < 0 ? [cell("category").trim()].filter(Boolean) : splitTags(cell("tags"))));
    const kind = cell("kind").trim();
    if (byOutput) item.outputs[cell("arm").trim()] = { kind, content: cell("output") };
    else header.forEach((arm, k) => !roles[k] && arm && (row[k] ?? "").trim() && (item.outputs[arm] = { kind, content: row[k] }));
  });
  const found = [...items.values()];
  return { arms: byOutput ? [...new Set(found.flatMap((item) => Object.keys(item.outputs)))].filter(Boolean) : names, items: found };
}

/** Parses CSV. Quoted cells may contain separators, line breaks and doubled quotes. */
function table(text, separator) {
  const rows = [[]];
  let cell = "";
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const one = text[i];
    if (quoted) {
      if (one !== '"') cell += one;
      else if (text[i + 1] === '"') cell += text[++i];
      else quoted = false;
    } else if (one === '"' && cell === "") quoted = true;
    else if (one === separator || one === "\n") {
      rows.at(-1).push(cell.replace(/\r$/, ""));
      cell = "";
      if (one === "\n") rows.push([]);
    } else cell += one;
  }
  rows.at(-1).push(cell);
  return rows.filter((row) => row.some((one) => one.trim()));
}
