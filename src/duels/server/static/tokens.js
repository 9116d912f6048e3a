/** Creates and revokes tokens. */

import { call } from "./api.js";
import { attempt, confirmed, onSubmit, fetchPage, showOnce } from "./ui.js";

const form = document.getElementById("new-token");
const said = document.getElementById("token-said");

async function refresh() {
  const fresh = (await fetchPage())?.getElementById("token-list");
  if (fresh) document.getElementById("token-list").replaceChildren(...fresh.childNodes);
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
  const asked = { title: `Revoke ${button.dataset.name}?`, words: "Programs that use this token stop working at once.", button: "Revoke" };
  if (!(await confirmed(asked))) return;
  await attempt(button, said, async () => {
    await call("DELETE", `/api/tokens/${button.dataset.token}`);
    await refresh();
    document.getElementById("token-list").focus();
  });
});
