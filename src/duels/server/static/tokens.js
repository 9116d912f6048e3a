/** Creates and revokes tokens. */

import { call } from "./api.js";
import { attempt, confirmed, onSubmit, fetchPage, showOnce } from "./ui.js";

const form = document.getElementById("new-token");
const said = document.getElementById("token-said");

const TO_COME_BACK = "To get another one, somebody with access to the server runs `duels token create NAME --kind admin`.";
const ENDS = { // who can no longer sign in
  "you": " You signed in with it, so you are signed out.",
  "everybody": ` It is the only admin token: nobody can sign in any more. ${TO_COME_BACK}`,
  "you and everybody": ` You signed in with it, and it is the only admin token: you are signed out, and nobody can sign in any more. ${TO_COME_BACK}`,
};

async function refresh() {
  const fresh = await fetchPage();
  for (const name of fresh ? ["token-list", "server-changes"] : []) {
    document.getElementById(name).replaceChildren(...fresh.getElementById(name).childNodes);
  }
}

onSubmit(form, said, async (values) => {
  const made = await call("POST", "/api/tokens", { name: values.get("name").trim(), kind: values.get("kind") });
  showOnce(document.getElementById("token-made"), "Copy this token now. It is not shown again:", made.token);
  form.reset();
  await refresh();
});

document.getElementById("token-list").addEventListener("click", async (event) => {
  const button = event.target.closest("[data-token]");
  if (!button) return;
  const { name, ends } = button.dataset;
  const words = `Programs that use this token stop working at once.${ENDS[ends] ?? ""}`;
  const asked = { title: `Revoke ${name}?`, words, button: "Revoke" };
  if (!(await confirmed(asked))) return;
  await attempt(button, said, async () => {
    await call("DELETE", `/api/tokens/${button.dataset.token}`);
    await refresh();
    document.getElementById("token-list").focus();
  });
});
