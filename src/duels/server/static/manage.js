/** What the pages that manage a study have in common. */

import { onSubmit, fetchPage, replaceLive } from "./ui.js";

export const study = document.getElementById("main").dataset.study;
export const place = (id) => document.getElementById(id);
export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
if (place("live")) place("live").hidden = true; // these pages change only by what is done on them

/** Gets this page again, and replaces what is different. */
export async function refresh() {
  const page = await fetchPage();
  if (page) replaceLive(page);
}

/** Calls `onSubmit` if the page has that form. */
export function onForm(id, said, work) {
  if (place(id)) onSubmit(place(id), place(said), work);
}

/** Handles clicks by selector. Updates replace the buttons, so one listener handles all of them. */
export function onClick(clicks) {
  place("main").addEventListener("click", (event) => {
    for (const [chosen, act] of Object.entries(clicks)) {
      const button = event.target.closest(chosen);
      if (button) act(button);
    }
  });
}
