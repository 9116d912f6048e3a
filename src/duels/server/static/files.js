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
    throw new Told(`${file.name} is not UTF-8 text: save it as CSV or JSON lines.`);
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

export function lines(text) {
  return text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
}

/** The first arm that occurs twice. */
export function repeated(arms) {
  return arms.find((arm, i) => arms.indexOf(arm) < i);
}

function ofObjects(name, text) {
  const isList = text.trimStart().startsWith("[");
  const items = isList ? json(name, text) : text.split("\n").flatMap((line, i) => (line.trim() ? [json(`${name}, line ${i + 1},`, line)] : []));
  return [...new Set(items.flatMap((item) => Object.keys(item?.outputs ?? {})))];
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
