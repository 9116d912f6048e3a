/** Keeps tables and charts of a study up to date: gets the page again after changes, and replaces what is different. */

import { draw } from "./charts.js";
import { follow } from "./live.js";
import { fetchPage, replaceLive } from "./ui.js";

const data = document.getElementById("charts");
const charts = () => JSON.parse(document.getElementById("charts").textContent);

async function update() {
  const page = await fetchPage();
  if (!page) return;
  replaceLive(page);
  if (data) await draw(charts());
}

follow(document.getElementById("main").dataset.study, document.getElementById("facts")?.dataset.seq, update);
if (data) draw(charts());
