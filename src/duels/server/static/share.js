/** The voting links of a study, and its votes in and out. */

import { at, call } from "./api.js";
import { textOf } from "./files.js";
import { count, onClick, onForm, place, refresh, study } from "./manage.js";
import { attempt, confirmed, say, showOnce } from "./ui.js";

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

onForm("import", "import-said", async () => {
  const input = place("import-file");
  if (!input.files.length) throw new Error("choose a file first.");
  if (!/\.parquet$/i.test(input.files[0].name)) await textOf(input.files[0]);
  const made = await call("POST", at(study, "import"), input.files[0]);
  input.value = "";
  await refresh();
  say(place("import-said"), `${count(made.imported, "vote")} imported.`);
});

onClick({
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
});
