/** The form for a new study. The arms are typed or come from a file, whose items are uploaded too. */

import { at, call } from "./api.js";
import { lines, readFound, repeated, textOf, watchFile } from "./files.js";
import { onSubmit } from "./ui.js";
import { Told } from "./words.js";

const form = document.getElementById("create");
const horizon = document.getElementById("horizon-field");
const live = document.getElementById("live-hint");
const kind = document.getElementById("kind-field");
const MOST_NAME = 200; // characters

function needsHorizon() {
  return form.policy.selectedOptions[0]?.dataset.horizon === "yes";
}

/** Asks for the number of duels if the policy needs it, and says so if a study with it may never end. */
function showNeeds() {
  horizon.hidden = !needsHorizon();
  const why = form.about.value !== "these-items" ? undefined : form.policy.selectedOptions[0]?.dataset.live;
  live.hidden = !why;
  live.textContent = why
    ? `A study may never end with ${form.policy.value}: ${why}. Voting pages never show an arm against itself.`
    : "";
}

/** Refuses names that the server would refuse, before anything is sent. */
function checkName(name) {
  if (!name) throw new Told("The study needs a name.");
  if (name.includes("/")) throw new Told("The name of a study cannot have a slash (/): use another character, such as a dash.");
  if (name === "." || name === "..") throw new Told("The name of a study cannot be just dots.");
}

function check(name, arms) {
  checkName(name);
  if (arms.length < 2) throw new Told("Enter at least two arms, one per line or in a file.");
  const long = arms.find((arm) => arm.length > MOST_NAME);
  if (long) throw new Told(`The name of an arm may have at most ${MOST_NAME} characters: “${long.slice(0, 40)}…” has ${long.length}. Give it a short name, and upload what it produced as items.`);
  const twice = repeated(arms);
  if (twice !== undefined) throw new Told(`Two arms are called “${twice}”: names must be unique.`);
}

async function create(values) {
  const file = form.file.files[0];
  const text = file ? await textOf(file) : "";
  let arms = lines(values.get("arms"));
  if (file && !arms.length) {
    const found = readFound(file.name, text);
    if (!found) throw new Told(`${file.name} holds results of promptfoo: enter the arms as it calls them, one per line.`);
    ({ arms } = found);
  }
  const name = values.get("name").trim();
  const wanted = { name, arms, policy: values.get("policy"), after: values.get("after") };
  wanted.about = values.get("about");
  wanted.confidence = Number(values.get("confidence"));
  wanted.margin = Number(values.get("margin"));
  if (needsHorizon()) wanted.horizon = Number(values.get("horizon"));
  check(name, arms);
  if (needsHorizon() && !(Number.isInteger(wanted.horizon) && wanted.horizon > 0)) throw new Told("The number of duels must be a whole number, 1 or more.");
  await call("POST", "/api/studies", wanted);
  if (file && !/\.txt$/i.test(file.name)) await upload(name, file, values.get("kind"));
  location.assign(`/studies/${encodeURIComponent(name)}`);
}

/** If the items are refused, deletes the study again, so that the form can be corrected and sent again. */
async function upload(name, file, kind) {
  try {
    await call("POST", `${at(name, "items")}?kind=${kind}`, file);
  } catch (error) {
    await call("DELETE", at(name));
    throw error;
  }
}

const list = document.getElementById("studies");
const search = document.getElementById("search");
const order = document.getElementById("order");
const ORDERS = {
  created: (a, b) => b.dataset.created.localeCompare(a.dataset.created),
  name: (a, b) => a.dataset.name.localeCompare(b.dataset.name),
  answers: (a, b) => Number(b.dataset.answers) - Number(a.dataset.answers),
  kind: (a, b) => (b.dataset.kind === "not yet") - (a.dataset.kind === "not yet"),
};

/** Shows the studies whose names contain what was typed, in the chosen order. */
function find() {
  const wanted = search.value.trim().toLowerCase();
  const all = [...list.children].sort(ORDERS[order.value]);
  for (const one of all) one.hidden = !one.dataset.name.toLowerCase().includes(wanted);
  list.append(...all);
  const shown = all.filter((one) => !one.hidden).length;
  document.getElementById("found").textContent = `${shown} of ${all.length} studies`;
}

search?.addEventListener("input", find);
order?.addEventListener("change", find);

form.policy.addEventListener("change", showNeeds);
form.about.addEventListener("change", showNeeds);
/** Only files with outputs have kinds of outputs. */
function showKind() {
  const [file] = form.file.files;
  kind.hidden = !file || /\.txt$/i.test(file.name);
}
form.file.addEventListener("change", showKind);
watchFile(form.file, form.kind, document.getElementById("kind-hint"), document.getElementById("file-found"));
showKind();
showNeeds();
onSubmit(form, document.getElementById("create-said"), create);

const tuning = document.getElementById("create-tuning");
onSubmit(tuning, document.getElementById("create-tuning-said"), async (values) => {
  const [name, space, file] = [values.get("name").trim(), values.get("space"), tuning.template.files[0]];
  checkName(name);
  if (!space.trim()) throw new Told("Enter at least one parameter, such as gap = [4, 40, \"int\"].");
  const template = file ? await textOf(file) : null;
  await call("POST", "/api/tunings", { name, space, template });
  location.assign(`/studies/${encodeURIComponent(name)}`);
});
