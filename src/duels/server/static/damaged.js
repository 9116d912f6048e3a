/** The page of a damaged study: it can be deleted. */

import { at, call } from "./api.js";
import { attempt, confirmed } from "./ui.js";

const study = document.getElementById("main").dataset.study;
const button = document.getElementById("delete-study");

button.addEventListener("click", async () => {
  const words = "All its answers, items and links will be deleted. This cannot be undone.";
  if (!(await confirmed({ title: "Delete this study?", words, button: "Delete", typed: study }))) return;
  await attempt(button, document.getElementById("end-said"), async () => {
    await call("DELETE", at(study));
    location.assign("/");
  });
});
