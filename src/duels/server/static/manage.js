/** Manages a study: links, items, arms, import and export, retiring and deleting. */

import { at, call } from "./api.js";
import { textOf } from "./files.js";
import { attempt, confirmed, fetchPage, onSubmit, replaceLive, say, showOnce } from "./ui.js";

const study = document.getElementById("main").dataset.study;
const place = (id) => document.getElementById(id);
document.getElementById("live").hidden = true; // these pages change only by what is done on them

/** Gets this page again, and replaces what is different. */
async function refresh() {
  const page = await fetchPage();
  if (page) replaceLive(page);
}

/** Calls `onSubmit` if the page has that form. */
function onForm(id, said, work) {
  if (place(id)) onSubmit(place(id), place(said), work);
}

const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

onForm("new-link", "link-said", async (values) => {
  const wanted = {
    name: values.get("name").trim() || place("link-name").placeholder,
    votes: Number(values.get("votes")),
    max_votes: Number(values.get("max_votes")) || null,
    max_votes_per_address: Number(values.get("max_votes_per_address")) || null,
  };
  const made = await call("POST", at(study, "links"), wanted);
  showOnce(place("link-made"), "Copy this link now. It is not shown again:", made.url, made.url);
  place("link-name").value = "";
  await refresh();
});

onForm("new-items", "items-said", async () => {
  const input = place("items-file");
  if (!input.files.length) throw new Error("choose a file first.");
  await textOf(input.files[0]);
  const made = await call("POST", at(study, "items"), input.files[0]);
  input.value = "";
  await refresh();
  say(place("items-said"), `${count(made.items, "item")} added, ${made.total.toLocaleString("en")} in total.`);
});

onForm("new-arm", "arm-said", async (values) => {
  await call("POST", at(study, "arms"), { name: values.get("name").trim() });
  place("arm-name").value = "";
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

/** Updates replace these buttons, so one listener handles all of them. */
const clicks = {
  "[data-revoke]": async (button) => {
    const name = button.dataset.name || "this link";
    const asked = { title: `Revoke ${name}?`, words: "Nobody can vote with it any more. Its votes are kept.", button: "Revoke" };
    if (!(await confirmed(asked))) return;
    await attempt(button, place("link-said"), async () => {
      await call("DELETE", at(study, "links", button.dataset.revoke));
      await refresh();
      place("link-name").focus();
    });
  },
  "#clear-items": async (button) => {
    const asked = { title: "Remove all items?", words: "The answers are kept. This cannot be undone.", button: "Remove" };
    if (!(await confirmed(asked))) return;
    await attempt(button, place("items-said"), async () => {
      await call("DELETE", at(study, "items"));
      await refresh();
      say(place("items-said"), "All items were removed.");
      place("items-file").focus();
    });
  },
  "#set-scripts": async (button) => {
    const scripts = button.dataset.to === "on";
    const words = "Scripts in the outputs will run in the browsers of your voters. They can send what they see to other computers.";
    if (scripts && !(await confirmed({ title: "Turn scripts on?", words, button: "Turn on" }))) return;
    await attempt(button, place("scripts-said"), async () => {
      await call("POST", at(study, "scripts"), { scripts });
      await refresh();
      place("set-scripts").focus();
    });
  },
  "[data-retire]": async (button) => {
    const name = button.dataset.retire;
    const words = "It will not be shown again, and its duels no longer count for the verdict. This cannot be undone.";
    if (!(await confirmed({ title: `Retire ${name}?`, words, button: "Retire" }))) return;
    await attempt(button, place("arm-said"), async () => {
      await call("POST", at(study, "arms", name, "retire"));
      await refresh();
      place("arm-name").focus();
    });
  },
  "#retire-study": async (button) => {
    const words = "Voters get no more questions. The answers are kept, and the study can be resumed.";
    const asked = { title: "Retire this study?", words, button: "Retire" };
    if (button.dataset.to === "retire" && !(await confirmed(asked))) return;
    await attempt(button, place("end-said"), async () => {
      await call("POST", at(study, button.dataset.to));
      await refresh();
      place("retire-study").focus();
    });
  },
  "#delete-study": async (button) => {
    const words = "All its answers, items and links will be deleted. This cannot be undone.";
    if (!(await confirmed({ title: "Delete this study?", words, button: "Delete", typed: study }))) return;
    await attempt(button, place("end-said"), async () => {
      await call("DELETE", at(study));
      location.assign("/");
    });
  },
};

document.getElementById("main").addEventListener("click", (event) => {
  for (const [chosen, act] of Object.entries(clicks)) {
    const button = event.target.closest(chosen);
    if (button) act(button);
  }
});
