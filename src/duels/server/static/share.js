/** Links for voters and viewers, and what goes in and out of a study as files. */

import { at, call } from "./api.js";
import { textOf } from "./files.js";
import { showInvited } from "./invite.js";
import { count, onClick, onForm, place, refresh, study } from "./manage.js";
import { attempt, confirmed, element, say, showOnce } from "./ui.js";

const EVERY = 10_000; // milliseconds between two looks at the votes so far
const DAY = 24 * 3600 * 1000;
const limit = (values, name) => Number(values.get(name)) || null;

/** When a link ends, as the API wants it; null for never. */
function end(values) {
  const chosen = values.get("ends");
  if (chosen === "date" || chosen === null) return timeOf(values.get("date"), chosen === "date");
  return chosen ? new Date(Date.now() + Number(chosen) * DAY).toISOString() : null;
}

function timeOf(text, needed) {
  if (!text && needed) throw new Error("choose a date and a time.");
  return text ? new Date(text).toISOString() : null;
}

/** Shows a new link, which is not shown again, and its QR code to look at and to save. */
function showLink(where, made) {
  showOnce(where, "Copy this link now. It is not shown again:", made.url, made.url);
  const picture = `data:image/svg+xml,${encodeURIComponent(made.qr)}`;
  const code = element("img", { src: picture, alt: "QR code of the link", class: "qr", width: "240", height: "240" });
  const save = element("a", { href: picture, download: "qr-code.svg", class: "button" }, "Save the QR code");
  where.firstElementChild.append(code, element("div", { class: "files" }, save));
}

onForm("new-link", "link-said", async (values) => {
  const made = await call("POST", at(study, "links"), {
    name: values.get("name").trim() || place("link-name").placeholder,
    votes: Number(values.get("votes")),
    max_votes: limit(values, "max_votes"),
    max_votes_per_voter: limit(values, "max_votes_per_voter"),
    max_votes_per_address: limit(values, "max_votes_per_address"),
    expires: end(values),
  });
  showLink(place("link-made"), made);
  place("link-name").value = "";
  await refresh();
});

onForm("new-invitations", "invite-said", async (values) => {
  const voters = values.get("names").split("\n").map((name) => name.trim()).filter(Boolean);
  if (!voters.length) throw new Error("write at least one name.");
  const made = await call("POST", at(study, "invitations"), {
    voters,
    name: values.get("name").trim() || place("invite-title").placeholder,
    votes: Number(values.get("votes")),
    max_votes_per_voter: limit(values, "max_votes_per_voter"),
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
  if (!input.files.length) throw new Error("choose a file first.");
  if (!/\.parquet$/i.test(input.files[0].name)) await textOf(input.files[0]);
  const made = await call("POST", at(study, "import"), input.files[0]);
  input.value = "";
  await refresh();
  say(place("import-said"), `${count(made.imported, "vote")} imported.`);
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
    changing = { id: button.dataset.change, expires: known.expires };
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
  const wanted = { name: values.get("name").trim() };
  if (values.has("votes")) wanted.votes = Number(values.get("votes"));
  for (const name of ["max_votes", "max_votes_per_voter", "max_votes_per_address"]) {
    if (values.has(name)) wanted[name] = limit(values, name);
  }
  if (values.get("date") !== forField(changing.expires)) wanted.expires = timeOf(values.get("date"), false);
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
