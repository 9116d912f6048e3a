/** What can be changed in a study: what voters see, the arms, and its end. */

import { at, call } from "./api.js";
import { textOf } from "./files.js";
import { onClick, onForm, place, refresh, study } from "./manage.js";
import { attempt, confirmed } from "./ui.js";
import { Told } from "./words.js";

onForm("voting", "voting-said", async (values) => {
  place("voting-saved").textContent = "";
  const saved = await call("PATCH", at(study, "settings"), {
    question: values.get("question"),
    instructions: values.get("instructions"),
    ties: values.has("ties"),
    both_bad: values.has("both_bad"),
    comments: values.has("comments"),
    votes: Number(values.get("votes")),
    ...(values.has("after") ? { after: values.get("after"), margin: Number(values.get("margin")) } : {}),
    ...(values.has("about") ? { about: values.get("about") } : {}),
  });
  place("question").value = saved.question;
  await refresh();
  place("voting-saved").textContent = "Saved. Voters see it at their next question.";
});
place("voting").addEventListener("input", () => (place("voting-saved").textContent = ""));

onForm("template-form", "template-said", async (values) => {
  place("template-saved").textContent = "";
  const html = values.get("template");
  const scripts = { scripts: values.has("scripts") };
  if (!scripts.scripts) await call("POST", at(study, "scripts"), scripts); // before a page whose scripts shall not run
  await call("PUT", at(study, "template"), { html: html.trim() ? html : null });
  if (scripts.scripts) await call("POST", at(study, "scripts"), scripts);
  await refresh();
  place("template-saved").textContent = "Saved. Voters see it at their next question.";
});
place("template-form")?.addEventListener("input", () => (place("template-saved").textContent = ""));
place("template-file")?.addEventListener("change", async (event) => {
  const [file] = event.target.files;
  await attempt(event.target, place("template-said"), async () => {
    if (file) place("template").value = await textOf(file);
  });
});

onForm("new-arm", "arm-said", async (values) => {
  const name = values.get("name").trim();
  if (!name) throw new Told("The arm needs a name.");
  await call("POST", at(study, "arms"), { name });
  place("arm-name").value = "";
  await refresh(); // it also says if no item has outputs of the arm
});

onClick({
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
    const words = `All its answers, ${place("template") ? "" : "items "}and links will be deleted. This cannot be undone.`;
    if (!(await confirmed({ title: "Delete this study?", words, button: "Delete", typed: study }))) return;
    await attempt(button, place("end-said"), async () => {
      await call("DELETE", at(study));
      location.assign("/");
    });
  },
});
