/** Shared parts of pages: messages of forms, secrets that are shown once, confirmations, live updates. */

import { ApiError } from "./api.js";
import { plainly } from "./words.js";

/** Creates an element with attributes and children. Strings become text, never markup. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Shows times in the reader's own zone, with UTC as a tooltip. `data-local` may be empty, seconds or date. */
export function localise(page) {
  for (const time of page.querySelectorAll("time[data-local]")) {
    const when = new Date(time.dateTime);
    const year = when.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
    const clock = time.dataset.local === "date" ? {} : { hour: "numeric", minute: "2-digit" };
    const exact = time.dataset.local === "seconds" ? { second: "2-digit" } : {};
    time.textContent = when.toLocaleString("en", { day: "numeric", month: "short", ...year, ...clock, ...exact });
    time.title = `${when.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  }
}

/** Draws paths, each with a class, as a picture that is as wide as its place; `label` says the same as text. */
export function drawLines(label, width, height, paths) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const attributes = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, preserveAspectRatio: "none", class: "lines" };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  for (const [path, kind] of paths) {
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", "path");
    drawn.setAttribute("d", path);
    drawn.setAttribute("class", kind);
    svg.append(drawn);
  }
  return svg;
}

export function say(place, words, bad = false) {
  place.classList.toggle("bad", bad);
  place.textContent = words;
}

/** Runs `work` unless it is running already, and shows errors in `place`. */
export async function attempt(button, place, work) {
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  say(place, "");
  try {
    await work();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      location.assign("/signin");
      return;
    }
    say(place, plainly(error), true);
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

/** Calls `work` when a form is submitted, instead of leaving the page. An error stays until something is corrected. */
export function onSubmit(form, place, work) {
  form.addEventListener("input", () => {
    if (place.classList.contains("bad")) say(place, "");
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form.querySelector("button:not([type=button])"), place, () => work(new FormData(form)));
  });
}

/** Copies a text, or selects where it is shown, and says so on the button. */
export async function copyText(button, text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(shown);
    button.textContent = "Selected: press Ctrl+C to copy";
  }
}

/** Shows a secret that is not shown again, with a button that copies it. */
export function showOnce(place, words, secret, href) {
  const copy = element("button", { type: "button", class: "small" }, "Copy");
  const text = href ? element("a", { href, class: "secret" }, secret) : element("span", { class: "secret" }, secret);
  copy.addEventListener("click", () => copyText(copy, secret, text));
  place.replaceChildren(element("div", { class: "made" }, element("p", {}, words), text, copy));
}

/** A warning about links that only this computer can open, to show next to them; nothing for other addresses. */
export function reachOf(url) {
  const { hostname } = new URL(url);
  if (!/^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\]|0\.0\.0\.0|\[::\])$/.test(hostname)) return [];
  const words = `Only this computer can open it, since this server's address is ${hostname}. Whoever runs the server can give it an ` +
    "address that others reach: ";
  const how = element("a", { href: "/help#team" }, "how to do that");
  return [element("p", { class: "reach" }, element("strong", {}, "Not for others yet. "), words, how, ".")];
}

/** Asks for confirmation; with `typed`, the user has to type that text. */
export function confirmed({ title, words, button, typed }) {
  const dialog = document.getElementById("confirm");
  const [field, input] = [dialog.querySelector("#confirm-field"), dialog.querySelector("#confirm-typed")];
  const yes = dialog.querySelector(".yes");
  dialog.querySelector("#confirm-title").textContent = title;
  dialog.querySelector("#confirm-words").textContent = words;
  yes.textContent = button;
  field.hidden = typed === undefined;
  input.value = "";
  dialog.querySelector("label").textContent = typed === undefined ? "" : `Type ${typed} to confirm`;
  const check = () => {
    yes.disabled = typed !== undefined && input.value !== typed;
  };
  check();
  input.addEventListener("input", check);
  dialog.returnValue = "no";
  dialog.showModal();
  (typed === undefined ? dialog.querySelector(".no") : input).focus();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        input.removeEventListener("input", check);
        resolve(dialog.returnValue === "yes");
      },
      { once: true },
    );
  });
}

/** Replaces the elements marked `data-live` that are different in a newer copy of this page. */
export function replaceLive(page) {
  const focused = document.activeElement?.id;
  for (const old of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(old.id);
    if (!fresh || fresh.outerHTML === old.outerHTML) continue;
    const scrolled = [...old.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
    old.replaceWith(document.adoptNode(fresh));
    fresh.querySelectorAll(".scroll").forEach((one, i) => {
      if (scrolled[i]) [one.scrollLeft, one.scrollTop] = scrolled[i];
    });
  }
  if (focused && document.activeElement?.id !== focused) {
    document.getElementById(focused)?.focus({ preventScroll: true });
  }
}

/** Gets this page again. Goes elsewhere if it was deleted, or if the session has ended. */
export async function fetchPage() {
  const response = await fetch(location.pathname + location.search, { cache: "no-store", credentials: "same-origin" });
  if (response.redirected) {
    location.assign(response.url);
    return null;
  }
  if (response.status === 404) {
    location.assign("/");
    return null;
  }
  if (!response.ok) throw new ApiError(response.status, `the server answered ${response.status}`, null);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  localise(page); // as in the page that is shown, so that only what is different is replaced
  return page;
}

localise(document);
