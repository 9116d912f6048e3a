/** The links of invited people, which are shown once: to copy one by one, all together, or to save as a file. */

import { copyText, element, reachOf } from "./ui.js";

/** A cell of a CSV file. A spreadsheet must not take a name for a formula. */
function cell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

export function showInvited(where, people) {
  const rows = people.map(({ voter, url }) => {
    const link = element("a", { href: url, class: "secret" }, url);
    const button = element("button", { type: "button", class: "small" }, "Copy", element("span", { class: "unseen" }, ` the link of ${voter}`));
    button.addEventListener("click", () => copyText(button, url, link));
    return element("tr", {}, element("th", { scope: "row" }, voter), element("td", {}, link), element("td", {}, button));
  });
  const head = element("tr", {}, ...["Name", "Link", ""].map((name) => element("th", { scope: "col" }, name || element("span", { class: "unseen" }, "Copy"))));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
  const all = element("button", { type: "button" }, "Copy all");
  all.addEventListener("click", () => copyText(all, people.map(({ voter, url }) => `${voter}\t${url}`).join("\n"), table));
  const lines = [["name", "link"], ...people.map(({ voter, url }) => [voter, url])].map((row) => row.map(cell).join(","));
  const file = `data:text/csv;charset=utf-8,${encodeURIComponent(`${lines.join("\r\n")}\r\n`)}`;
  const save = element("a", { href: file, download: "invitations.csv", class: "button" }, "Save as CSV");
  const words = people.length === 1 ? "Copy this link now. It is not shown again:" : "Copy these links now. They are not shown again:";
  const region = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Links of invited people, table" }, table);
  where.replaceChildren(element("div", { class: "made" }, element("p", {}, words), ...reachOf(people[0].url), region, element("div", { class: "files" }, all, save)));
}
