/** The charts of a study, drawn by Vega as labelled SVG. A chart stays visible until the next one is ready. */

const OPTIONS = {
  renderer: "svg",
  mode: "vega-lite",
  ast: true,
  actions: false,
  defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
};
const drawn = new Map(); // by name: the specification of each chart, and its `finalize`

const MIN_SCALE = 0.8; // smaller charts would be unreadable: a narrower page scrolls the chart
const sizes = new ResizeObserver((all) => all.forEach(({ target }) => makeFocusable(target)));

export async function draw(charts) {
  for (const figure of document.querySelectorAll("[data-chart]")) {
    const name = figure.dataset.chart;
    const chart = charts[name]?.chart;
    figure.hidden = chart === undefined;
    if (chart !== undefined) await drawOne(name, figure.querySelector(".drawing"), chart);
  }
}

async function drawOne(name, place, chart) {
  const shown = styled(chart);
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
  picture.style.minWidth = `${MIN_SCALE * picture.width.baseVal.value}px`;
  place.replaceChildren(sheet);
  sizes.observe(place);
  makeFocusable(place);
  before?.finalize();
  drawn.set(name, { text, finalize });
}

/** A chart that scrolls can be focused, so that the keyboard can scroll it. */
function makeFocusable(place) {
  if (place.scrollWidth > place.clientWidth) place.tabIndex = 0;
  else place.removeAttribute("tabindex");
}

/** A copy of a chart for the page, without background. In dark mode, CSS inverts charts, and puts heat maps on white. */
function styled(chart) {
  return { ...chart, config: { ...chart.config, background: "transparent", padding: 4 } };
}
