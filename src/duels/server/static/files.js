/** Reads the names of arms from a file. The server checks the rest of the file. */

import { Told } from "./words.js";

const ROLES = ["prompt", "query", "kind", "tags", "category", "id", "index", "uuid"];
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

export function armsIn(name, text) {
  if (/\.txt$/i.test(name)) return lines(text);
  if (TABLE.test(name)) return ofTable(table(text, /\.tsv$/i.test(name) ? "\t" : ","));
  if (/\.(json|jsonl|ndjson)$/i.test(name) || /^\s*[[{]/.test(text)) return ofObjects(name, text);
  throw new Told(`${name} has an unknown type: expected a name that ends in .csv, .jsonl or .txt.`);
}

const MARKS = /^(```|#{1,6} |[-*] |\d+\. )|\*\*\S[^*]*\*\*/m; // fences, headings, lists, bold
const SHARE = 0.1; // of the outputs that must have such marks, and two of them at least

/** Whether the outputs of a file do not state their kind and look like Markdown. */
export function looksLikeMarkdown(name, text) {
  let outputs;
  try {
    outputs = TABLE.test(name) ? cellsOf(table(text, /\.tsv$/i.test(name) ? "\t" : ",")) : textsOf(objects(name, text));
  } catch {
    return false; // the upload says what is wrong
  }
  const marked = outputs.filter((one) => MARKS.test(one)).length;
  return marked >= 2 && marked >= SHARE * outputs.length;
}

/** Puts Markdown into a select of kinds when a file is chosen whose outputs look like it, unless somebody has chosen a kind. */
export function watchKind(input, select, hint) {
  let chosen = false;
  select.addEventListener("change", () => {
    chosen = true;
    hint.textContent = "";
  });
  input.addEventListener("change", async () => {
    const [file] = input.files;
    const text = file ? await textOf(file).catch(() => "") : "";
    if (chosen || file !== input.files[0]) return;
    const found = looksLikeMarkdown(file?.name ?? "", text);
    const { usual } = select.dataset; // of the outputs that are there: the sides of a question are shown alike
    select.value = found ? "markdown" : (usual ?? "text");
    const alike = file && usual && usual !== "text" ? `They are shown like the outputs that are there: as ${usual}.` : "";
    hint.textContent = found ? "These outputs look like Markdown, so they are shown as Markdown." : alike;
  });
}

export function lines(text) {
  return text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
}

/** The first arm that occurs twice. */
export function repeated(arms) {
  return arms.find((arm, i) => arms.indexOf(arm) < i);
}

function ofObjects(name, text) {
  return [...new Set(objects(name, text).flatMap((item) => Object.keys(item?.outputs ?? {})))];
}

function objects(name, text) {
  const isList = text.trimStart().startsWith("[");
  return isList ? json(name, text) : text.split("\n").flatMap((line, i) => (line.trim() ? [json(`${name}, line ${i + 1},`, line)] : []));
}

/** The outputs of objects that do not state a kind. */
function textsOf(items) {
  return items.filter((item) => !item?.kind).flatMap((item) => Object.values(item?.outputs ?? {}))
    .map((one) => (one?.kind ? null : (one?.content ?? one))).filter((one) => typeof one === "string");
}

/** The outputs of a table; none if it has a column of kinds. */
function cellsOf(rows) {
  const small = (rows[0] ?? []).map((cell) => cell.trim().toLowerCase());
  if (small.includes("kind")) return [];
  return rows.slice(1).flatMap((row) => row.filter((cell, i) => cell.trim() && !ROLES.includes(small[i])));
}

function json(place, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Told(`${place} is not JSON: ${error.message}.`);
  }
}

function ofTable(rows) {
  const header = (rows[0] ?? []).map((cell) => cell.trim());
  const small = header.map((cell) => cell.toLowerCase());
  const arm = small.indexOf("arm");
  if (arm >= 0 && small.includes("output")) return [...new Set(rows.slice(1).map((row) => (row[arm] ?? "").trim()).filter(Boolean))];
  return header.filter((cell, i) => cell && !ROLES.includes(small[i]));
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
