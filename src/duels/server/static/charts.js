/** The charts of a study, drawn by Vega as SVG that has a name. What is there stays until the next one is ready. */

const OPTIONS = {
  renderer: "svg",
  mode: "vega-lite",
  ast: true,
  actions: false,
  defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
};
// In the dark, CSS turns light and dark of a chart around; but not where darkness has a meaning, as in these two.
const CELLS = ["beats", "duels"];
const LIGHT = "#e9e7e2";
const IN_THE_DARK = {
  axis: { labelColor: LIGHT, titleColor: LIGHT },
  legend: { labelColor: LIGHT, titleColor: LIGHT },
  view: { stroke: "transparent" },
};
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map(); // by its name, each chart's text and its end

const SMALLEST = 0.8; // of its size, to be read; a page that is narrower scrolls the chart
const sizes = new ResizeObserver((all) => all.forEach(({ target }) => reachable(target)));

let latest = {};

export async function draw(charts) {
  latest = charts;
  for (const figure of document.querySelectorAll("[data-chart]")) {
    const name = figure.dataset.chart;
    const chart = charts[name]?.chart;
    figure.hidden = chart === undefined;
    if (chart !== undefined) await redraw(name, figure.querySelector(".drawing"), chart);
  }
}

async function redraw(name, place, chart) {
  const shown = dressed(chart, dark.matches && CELLS.includes(name));
  const text = JSON.stringify(shown);
  const before = drawn.get(name);
  if (before?.text === text) return;
  const sheet = document.createElement("div");
  const { finalize } = await window.vegaEmbed(sheet, shown, OPTIONS);
  const picture = sheet.querySelector("svg");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", chart.description);
  for (const part of picture.querySelectorAll("[role], [aria-label], [aria-roledescription]")) {
    for (const attribute of ["role", "aria-label", "aria-roledescription"]) part.removeAttribute(attribute);
  }
  picture.style.minWidth = `${SMALLEST * picture.width.baseVal.value}px`;
  place.replaceChildren(sheet);
  sizes.observe(place);
  reachable(place);
  before?.finalize();
  drawn.set(name, { text, finalize });
}

/** What scrolls can be reached without a mouse. */
function reachable(place) {
  if (place.scrollWidth > place.clientWidth) place.tabIndex = 0;
  else place.removeAttribute("tabindex");
}

/** A copy of a chart for a page: no ground of its own and, if asked for, light letters and outlines. */
function dressed(chart, light) {
  const copy = structuredClone(chart);
  copy.config = { ...copy.config, background: "transparent", padding: 4 };
  if (!light) return copy;
  for (const [part, colours] of Object.entries(IN_THE_DARK)) copy.config[part] = { ...copy.config[part], ...colours };
  for (const layer of copy.layer ?? []) if (layer.mark?.stroke === "black") layer.mark.stroke = LIGHT;
  return copy;
}

dark.addEventListener("change", () => draw(latest));
