/** Links for voters and viewers, and what goes in and out of a study as files. */

import { at, call } from "./api.js";
import { textOf } from "./files.js";
import { showInvited } from "./invite.js";
import { count, onClick, onForm, place, refresh, study } from "./manage.js";
import { attempt, confirmed, element, reachOf, say, showOnce } from "./ui.js";
import { Told } from "./words.js";

const EVERY = 10_000; // milliseconds between two looks at the votes so far
const DAY = 24 * 3600 * 1000;
const MOST_NAME = 200; // characters
const MOST_PEOPLE = 200; // who are invited at once
const LIMITS = { votes: "Votes each", max_votes: "Max. in total", max_votes_per_voter: "Max. per voter", max_votes_per_address: "Max. per address" };

/** The numbers in a form, null where it is empty; refuses what is no whole number, and what contradicts unless it is `known`. */
function numbers(form, values, known = {}) {
  const found = {};
  for (const [name, label] of Object.entries(LIMITS)) {
    const input = form.elements[name];
    if (!input || !values.has(name)) continue;
    const number = values.get(name) ? Number(values.get(name)) : null;
    const good = number === null ? !input.validity.badInput : Number.isInteger(number) && number >= 1 && number <= Number(input.max);
    if (!good) throw new Told(`${label} must be a whole number from 1 to ${Number(input.max).toLocaleString("en")}, or empty.`);
    found[name] = number;
  }
  const wanted = found.votes ?? Number(form.elements.votes?.dataset.usual);
  const changed = ["votes", "max_votes_per_voter"].some((name) => found[name] !== known[name]);
  if (changed && found.max_votes_per_voter && found.max_votes_per_voter < wanted) {
    const whose = found.votes === null ? " (from Settings)" : "";
    throw new Told(`Max. per voter is ${found.max_votes_per_voter}, less than the ${wanted} votes each${whose} that the link asks for. Raise it, or write a smaller number under Votes each.`);
  }
  return found;
}

/** When a link ends, as the API wants it; null for never. */
function end(values) {
  const chosen = values.get("ends");
  if (chosen === "date" || chosen === null) return timeOf(values.get("date"), chosen === "date");
  return chosen ? new Date(Date.now() + Number(chosen) * DAY).toISOString() : null;
}

function timeOf(text, needed) {
  if (!text && needed) throw new Told("Choose a date and a time.");
  if (!text) return null;
  const when = new Date(text);
  if (!(when > Date.now())) throw new Told("Ends: choose a time to come. This one is over.");
  if (when - Date.now() > 100 * 365 * DAY) throw new Told("Ends: choose a time within the next 100 years.");
  return when.toISOString();
}

/** Shows a new link, which is not shown again, and its QR code to look at and to save. */
function showLink(where, made) {
  showOnce(where, "Copy this link now. It is not shown again:", made.url, made.url);
  const picture = `data:image/svg+xml,${encodeURIComponent(made.qr)}`;
  const code = element("img", { src: picture, alt: "QR code of the link", class: "qr", width: "240", height: "240" });
  const save = element("a", { href: picture, download: "qr-code.svg", class: "button" }, "Save the QR code");
  where.firstElementChild.append(...reachOf(made.url), code, element("div", { class: "files" }, save));
}

onForm("new-link", "link-said", async (values) => {
  const made = await call("POST", at(study, "links"), {
    name: values.get("name").trim(),
    ...numbers(place("new-link"), values),
    expires: end(values),
  });
  showLink(place("link-made"), made);
  place("link-name").value = "";
  await refresh();
});

onForm("new-invitations", "invite-said", async (values) => {
  const voters = values.get("names").split("\n").map((name) => name.trim()).filter(Boolean);
  if (!voters.length) throw new Told("Write at least one name.");
  if (voters.length > MOST_PEOPLE) throw new Told(`These are ${voters.length} names. Invite at most ${MOST_PEOPLE} people at once.`);
  const long = voters.find((name) => name.length > MOST_NAME);
  if (long) throw new Told(`A name may have at most ${MOST_NAME} characters: “${long.slice(0, 40)}…” has ${long.length}.`);
  const made = await call("POST", at(study, "invitations"), {
    voters,
    name: values.get("name").trim(),
    ...numbers(place("new-invitations"), values),
    expires: end(values),
  });
  showInvited(place("invite-made"), made.invitations);
  place("invite-names").value = "";
  await refresh();
});

onForm("new-results-link", "results-said", async (values) => {
  const made = await call("POST", at(study, "results-links"), { name: values.get("name").trim(), expires: end(values) });
  showLink(place("results-made"), made);
  place("results-name").value = "";
  await refresh();
});

onForm("import", "import-said", async () => {
  const input = place("import-file");
  if (!input.files.length) throw new Told("Choose a file first.");
  if (!/\.parquet$/i.test(input.files[0].name)) await textOf(input.files[0]);
  const made = await call("POST", at(study, "import"), input.files[0]);
  input.value = "";
  await refresh();
  say(place("import-said"), [`${count(made.imported, "vote")} imported.`, made.note].filter(Boolean).join(" "));
});

const SAID = { link: "link-said", invitation: "invite-said", results: "results-said" };
const saidOf = (button) => place(SAID[button.closest("section").querySelector("[data-kind]")?.dataset.kind] ?? "link-said");
const LOST = {
  link: "Nobody can vote with it any more, for good. Its votes are kept.",
  invitation: "The link does not work any more. The votes are kept.",
  results: "Nobody can see the results with it any more, for good.",
};

let changing = null; // the link in the dialog

/** A time for a field, which has the reader's zone. */
function forField(time) {
  if (!time) return "";
  const when = new Date(time);
  return new Date(when - when.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

onClick({
  "[data-revoke]": async (button) => {
    const { revoke, kind, name } = button.dataset;
    if (!(await confirmed({ title: `Revoke ${name}?`, words: LOST[kind], button: "Revoke" }))) return;
    await attempt(button, saidOf(button), async () => {
      await call("DELETE", at(study, "links", revoke));
      await refresh();
      place("link-name").focus();
    });
  },
  "[data-switch]": (button) =>
    attempt(button, saidOf(button), async () => {
      await call("PATCH", at(study, "links", button.dataset.switch), { on: button.dataset.on === "true" });
      await refresh();
    }),
  "[data-renew]": async (button) => {
    const words = "The old link stops working. The votes are kept.";
    if (!(await confirmed({ title: `New link for ${button.dataset.name}?`, words, button: "New link" }))) return;
    await attempt(button, place("invite-said"), async () => {
      const made = await call("POST", at(study, "invitations", button.dataset.renew, "renew"));
      showInvited(place("invite-made"), [made]);
      await refresh();
      place("invite-made").scrollIntoView({ block: "nearest" });
    });
  },
  "[data-change]": (button) => {
    const [form, known] = [place("change-form"), JSON.parse(button.dataset.known)];
    changing = { id: button.dataset.change, known };
    place("change-name").placeholder = place(button.dataset.kind === "results" ? "results-name" : "link-name").placeholder;
    for (const part of form.querySelectorAll("[data-of]")) {
      part.hidden = !part.dataset.of.split(" ").includes(button.dataset.kind);
      for (const input of part.querySelectorAll("input")) input.disabled = part.hidden;
    }
    for (const input of form.querySelectorAll("input[name]")) input.value = known[input.name] ?? "";
    place("change-date").value = forField(known.expires);
    say(place("change-said"), "");
    place("change").showModal();
  },
  "#change-cancel": () => place("change").close(),
});

onForm("change-form", "change-said", async (values) => {
  if (place("change-date").validity.badInput) throw new Told("Ends: write the whole date and time, or nothing.");
  const { known } = changing;
  const wanted = { name: values.get("name").trim(), ...numbers(place("change-form"), values, known) };
  for (const name of Object.keys(wanted)) if (wanted[name] === known[name]) delete wanted[name];
  if (values.get("date") !== forField(known.expires)) wanted.expires = timeOf(values.get("date"), false);
  await call("PATCH", at(study, "links", changing.id), wanted);
  place("change").close();
  await refresh();
});

document.addEventListener("change", (event) => {
  const field = event.target.dataset?.ends;
  if (field) place(field).hidden = event.target.value !== "date";
});

setInterval(() => {
  if (!document.hidden && !document.querySelector("dialog[open]")) refresh().catch(() => {});
}, EVERY);
