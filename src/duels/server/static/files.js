/** The arms that a file speaks of. The server checks the file; this reads only as much as is needed for that. */

const ROLES = ["prompt", "query", "kind"];

export function armsIn(name, text) {
  const content = text.replace(/^\ufeff/, "");
  if (/\.txt$/i.test(name)) return lines(content);
  if (/\.(csv|tsv)$/i.test(name)) return ofTable(table(content, /\.tsv$/i.test(name) ? "\t" : ","));
  return ofObjects(content);
}

export function lines(text) {
  return [...new Set(text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean))];
}

function ofObjects(text) {
  const isList = text.trimStart().startsWith("[");
  const items = isList ? JSON.parse(text) : text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  return [...new Set(items.flatMap((item) => Object.keys(item?.outputs ?? {})))];
}

function ofTable(rows) {
  const header = (rows[0] ?? []).map((cell) => cell.trim());
  const small = header.map((cell) => cell.toLowerCase());
  const arm = small.indexOf("arm");
  if (arm >= 0 && small.includes("output")) return [...new Set(rows.slice(1).map((row) => (row[arm] ?? "").trim()).filter(Boolean))];
  return header.filter((cell, i) => cell && !ROLES.includes(small[i]));
}

/** The rows of a CSV text; cells may be in quotes, with separators, line breaks and doubled quotes inside. */
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
