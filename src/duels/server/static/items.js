/** The items of a study. */

import { at, call } from "./api.js";
import { textOf } from "./files.js";
import { count, onClick, onForm, place, refresh, study } from "./manage.js";
import { attempt, confirmed, say } from "./ui.js";

onForm("new-items", "items-said", async () => {
  const input = place("items-file");
  if (!input.files.length) throw new Error("choose a file first.");
  await textOf(input.files[0]);
  const made = await call("POST", at(study, "items"), input.files[0]);
  input.value = "";
  await refresh();
  say(place("items-said"), `${count(made.items, "item")} added, ${made.total.toLocaleString("en")} in total.`);
});

onClick({
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
});
