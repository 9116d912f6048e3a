/** Voting: a question, an answer, the next question. One request at a time; a failed answer is sent again. */

import { call, ApiError } from "./api.js";
import { element } from "./ui.js";
import { joinUnits, plainly, sentence } from "./words.js";

const place = (id) => document.getElementById(id);
const address = place("main").dataset.base;
const preview = "preview" in place("main").dataset; // the server keeps nothing, so this page counts
const KEYS = {
  ArrowLeft: "a", a: "a", 1: "a",
  ArrowRight: "b", b: "b", 2: "b",
  t: "tie", ArrowDown: "tie",
  x: "both_bad",
  s: "skip",
  u: "undo", Backspace: "undo",
  c: "comment",
};
const THANKS = {
  goal: "That is all we wanted to ask. You can keep voting if you like.",
  winner: "The result is known, so no more votes are needed.",
  everything: "You have seen everything there is to compare.",
  asked: "Every question has been asked. Come back in a few minutes: what stays open is asked again.",
  retired: "This study has ended.",
  full: "This link accepts no more votes.",
};
const TOO_LATE = { // for voters who arrive after the end
  winner: ["This comparison is over: the result is known.", "No more votes are needed."],
  everything: ["You have seen everything there is to compare.", "There are no more questions for you."],
  asked: ["Every question has been asked.", "Others have the last ones. Come back in a few minutes: what stays open is asked again."],
  retired: ["This comparison is over.", "No more votes are needed."],
  full: ["This link accepts no more votes.", "It has reached its maximum."],
};
const USUAL = "Which is better?"; // what the page asks anyway
const LONG = 150; // characters; longer prompts are not bold
let duel = null; // the question that is shown
let more = false; // whether to continue after the goal
let undoable = false;
let busy = true;
const written = new Map(); // by duel: the comments of this page, for questions that come back
let settings = { ties: true, both_bad: true, comments: false }; // as the last question said

const LATE = 700; // milliseconds after which the page says that it waits
let late;

function setBusy(now) {
  busy = now;
  clearTimeout(late);
  document.body.classList.remove("sending");
  place("sending").textContent = "";
  if (now) late = setTimeout(showLate, LATE);
  for (const button of document.querySelectorAll("#question button, .thanks button")) {
    button.setAttribute("aria-disabled", String(now || ("undo" in button.dataset && !undoable)));
  }
}

function showLate() {
  document.body.classList.add("sending");
  place("sending").textContent = "One moment: the network is slow.";
}

const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

/** Sends a request until the server accepts it. An answer names its duel, so sending it twice counts once. */
async function sendUntilDone(path, body) {
  for (let failed = 0; ; ) {
    try {
      const answer = await call("POST", `${address}/${path}`, path === "ask" ? counted(body) : body);
      place("trouble").textContent = "";
      return answer;
    } catch (error) {
      const temporary = !(error instanceof ApiError) || error.status === 429 || error.status >= 500;
      if (!temporary) throw error;
      const pause = error.retry ?? Math.min(2 ** failed++, 15);
      const why = error instanceof ApiError ? sentence(error.message) : "The server cannot be reached.";
      place("trouble").textContent = joinUnits(`${why} Trying again in ${pause} s.`);
      await wait(pause);
    }
  }
}

let given = 0; // answers in a preview
const counted = (body) => (preview ? { ...body, number: given } : body);

/** Runs one thing at a time; keys and clicks meanwhile are ignored. */
async function alone(work) {
  if (busy) return;
  setBusy(true);
  try {
    await work();
  } catch (error) {
    await recover(error);
  } finally {
    setBusy(false);
  }
}

/** After a permanent error: shows it, and the question that is open now. */
async function recover(error) {
  if ([401, 404].includes(error.status)) {
    location.reload(); // the page explains that the link no longer works
    return;
  }
  const words = error instanceof ApiError ? plainly(error) : "The server cannot be reached, so nothing was undone.";
  await next().catch(() => {});
  place("trouble").textContent = words;
}

async function next() {
  try {
    show(await sendUntilDone("ask", { more }));
  } catch (error) {
    if (error.status !== 409) throw error;
    showNothing();
  }
}

async function vote(winner) {
  if (duel === null) return;
  let news = "";
  try {
    const comment = winner === "skip" || !settings.comments ? null : place("comment").value.trim() || null;
    const told = await sendUntilDone("tell", { duel, winner, comment });
    given = told.answered;
    showInstructions(false);
  } catch (error) {
    if (error.status !== 409 || !error.message.includes("was answered")) throw error;
    news = "You answered this question in another tab.";
  }
  undoable = true;
  await next();
  place("trouble").textContent = news;
}

/** Not repeated automatically: a second request would undo another answer. */
async function undo() {
  if (!undoable) return;
  const question = await call("POST", `${address}/undo`, preview ? { number: given } : undefined);
  given = question.answered;
  place("trouble").textContent = "";
  undoable = question.answered > 0;
  show(question, "Your last answer was undone.");
}

/** Shows one of the three parts: the question, the thanks, or that there is nothing to compare. */
function showPart(chosen) {
  place("loading").hidden = true;
  const bar = place("answers"); // what goes wrong is said next to the buttons, which are always in view
  if (chosen === "question") bar.prepend(place("trouble"));
  else place("main").insertBefore(place("trouble"), place("news"));
  for (const id of ["question", "thanks", "nothing"]) place(id).hidden = id !== chosen;
}

function showNothing() {
  duel = null;
  place("trouble").textContent = "";
  showPart("nothing");
  place("news").textContent = place("nothing-title").textContent;
  place("nothing").focus({ preventScroll: true });
}

/** Applies what the person who asks may change meanwhile; returns whether the page must be loaded again for it. */
function adjust(question) {
  settings = question;
  const { ties, both_bad: bothBad, comments } = question;
  document.querySelector("[data-winner=tie]").hidden = !ties;
  document.querySelector("[data-winner=both_bad]").hidden = !bothBad;
  const possible = { tie: ties, both_bad: bothBad, comment: comments };
  for (const one of help.querySelectorAll("[data-only]")) one.hidden = !possible[one.dataset.only];
  place("comment-button").hidden = !comments;
  if (!comments) showComment(false);
  place("title").textContent = question.title || question.question;
  place("asked").textContent = question.question;
  return question.page !== place("main").dataset.version;
}

function show(question, news = "") {
  if (adjust(question)) {
    location.reload(); // other instructions
    return;
  }
  undoable ||= question.answered > 0;
  showProgress(question);
  const was = duel;
  duel = question.duel;
  if (was !== duel) changeComment(was, question.comment);
  showPart(duel === null ? "thanks" : "question");
  if (duel === null) {
    thank(question);
    return;
  }
  const byName = question.a.kind === "name";
  place("prompt").textContent = question.prompt ?? question.question;
  const said = [USUAL, place("title").textContent, place("prompt").textContent];
  place("asked").hidden = said.includes(question.question);
  place("prompt").classList.toggle("long", place("prompt").textContent.length > LONG);
  place("prompt").scrollTop = 0;
  place("prompt").hidden = place("prompt").textContent === document.querySelector("h1").textContent;
  if (was !== duel || news) for (const letter of ["a", "b"]) showSide(letter, question[letter]);
  wrap.hidden = !document.querySelector(".output pre");
  setFolded(true);
  // Where the page scrolls, on phones and zoomed, the next question begins at its beginning.
  if (was !== duel && place("question").getBoundingClientRect().top < 0) place("question").scrollIntoView();
  place("keys-hint").hidden = ![question.a.kind, question.b.kind].includes("html");
  const names = byName ? `A: ${place("output-a").textContent}. B: ${place("output-b").textContent}.` : "";
  const number = `Question ${(question.answered + 1).toLocaleString("en")}.`;
  place("news").textContent = [news, number, place("asked").hidden ? "" : question.question, place("prompt").textContent, names].filter(Boolean).join(" ");
  if (document.activeElement === document.body || !document.activeElement.checkVisibility()) {
    place("main").focus({ preventScroll: true });
  }
}

function showProgress({ answered, goal }) {
  place("so-far").hidden = false;
  place("progress").max = goal;
  place("progress").value = Math.min(answered, goal);
  const number = answered.toLocaleString("en");
  place("progress-words").textContent = answered > goal ? `${number} votes` : `${number} of ${goal.toLocaleString("en")}`;
}

function showSide(letter, side) {
  const output = place(`output-${letter}`);
  const title = `Output ${letter.toUpperCase()}`;
  output.className = `output ${side.kind}`;
  output.scrollTop = 0;
  const [large, tab] = [`#large-${duel}-${letter}`, { target: "_blank", rel: "noopener" }];
  if (side.kind === "html") {
    output.replaceChildren(frame(side.src, title), element("a", { href: large, ...tab }, "Open full size"));
  } else if (side.kind === "image") {
    const picture = element("img", { src: side.src, alt: title });
    const button = element("button", { type: "button", class: "picture", "aria-label": `Zoom output ${letter.toUpperCase()}` }, picture);
    button.addEventListener("click", () => zoom(letter));
    picture.addEventListener("load", measure);
    output.replaceChildren(button, element("a", { href: large, ...tab }, "Open full size"));
  } else {
    output.innerHTML = side.html; // sanitized by the server
  }
}

function frame(src, title) {
  return element("iframe", { sandbox: "scripts" in place("main").dataset ? "allow-scripts" : "", src, title });
}

/**
 * Uses this page as a tab for one output. The output stays in a frame: without one it could navigate anywhere. Its URL
 * is requested again, since that of the other tab may have expired.
 */
async function showLarge(asked, letter) {
  document.title = `Output ${letter.toUpperCase()}`;
  given = asked;
  const question = await sendUntilDone("ask", { more: true });
  if (question.duel !== asked) {
    showPart("nothing");
    place("again").hidden = true;
    place("nothing-title").textContent = "This question is over. You can close this tab.";
    return;
  }
  const { kind, src } = question[letter];
  const shown = kind === "html" ? frame(src, document.title) : element("img", { src, alt: document.title });
  place("main").replaceChildren(shown);
  document.body.classList.add("large");
}

function thank({ done, answered }) {
  const votes = `You gave ${answered.toLocaleString("en")} vote${answered === 1 ? "" : "s"}.`;
  const late = answered === 0 && TOO_LATE[done];
  const [title, words] = late || ["Thank you!", `${votes} ${THANKS[done]}`];
  place("so-far").hidden = Boolean(late);
  place("thanks-title").textContent = title;
  place("thanks-words").textContent = words;
  place("more").hidden = done !== "goal";
  place("undo-last").hidden = !["goal", "full", "everything", "asked"].includes(done) || !undoable;
  place("news").textContent = `${title} ${words}`;
  place("thanks").focus({ preventScroll: true });
}

function act(what) {
  if (what === "comment") {
    if (settings.comments && duel !== null) showComment(true);
    return;
  }
  if ((what === "tie" && !settings.ties) || (what === "both_bad" && !settings.both_bad)) return;
  if (what === "undo") alone(undo);
  else if (duel !== null) alone(() => vote(what));
}

/** Whether the arrow down scrolls; then it does not vote. */
function scrolls(event) {
  const inside = event.target.closest?.(".output, .prompt");
  const tall = (one) => one.scrollHeight > one.clientHeight + 1;
  return event.key === "ArrowDown" && (inside ? tall(inside) : tall(document.documentElement));
}

/** Keys can be turned off, for people who use speech input or press keys by accident. */
const keys = place("keys");
keys.checked = localStorage.getItem("keys") !== "off";
keys.addEventListener("change", () => localStorage.setItem("keys", keys.checked ? "on" : "off"));

const help = place("keys-help");
place("keys-button").addEventListener("click", () => help.showModal());

/** Long lines of code are wrapped or scrolled, in both outputs alike. */
const wrap = place("wrap");
function setWrapped(wrapped) {
  wrap.setAttribute("aria-pressed", String(wrapped));
  place("question").classList.toggle("wrapped", wrapped);
}
setWrapped(localStorage.getItem("wrap") === "on");
wrap.addEventListener("click", () => {
  const wrapped = wrap.getAttribute("aria-pressed") !== "true";
  localStorage.setItem("wrap", wrapped ? "on" : "off");
  setWrapped(wrapped);
});

/** Comments are for the question that is shown. */
function showComment(open, focus = true) {
  place("comment-field").hidden = !open;
  place("comment-button").setAttribute("aria-expanded", String(open));
  if (open && focus) place("comment").focus();
}
/** Keeps what was typed about the question before, and shows what was written about this one, if it was undone. */
function changeComment(was, stored) {
  const comment = place("comment");
  if (was !== null) written.set(was, comment.value);
  comment.value = stored ?? written.get(duel) ?? "";
  if (comment.value && settings.comments) showComment(true, false);
}
place("comment").addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing) return;
  event.preventDefault();
  if (!place("comment").value.trim()) showComment(false);
  place("main").focus({ preventScroll: true }); // where the keys of answers work
});
place("comment-button").addEventListener("click", () => showComment(place("comment-field").hidden));

/** Instructions are open until the first answer; then they are a click away. */
function showInstructions(open) {
  const instructions = place("instructions");
  if (!instructions || instructions.open === open) return;
  instructions.open = open;
  if (!open) localStorage.setItem("read", place("main").dataset.version);
}
showInstructions(localStorage.getItem("read") !== place("main").dataset.version);

/** Outputs that do not fit are cut at the same height, and shown in full together. */
const fold = place("fold");
const outputs = ["a", "b"].map((letter) => place(`output-${letter}`));
const roomy = matchMedia("(min-width: 46rem) and (min-height: 30.01rem)");
/** The button is among the small ones, or below the outputs where these have no room for it. */
function placeFold() {
  if (roomy.matches) document.querySelector(".less").insertBefore(fold, wrap);
  else document.querySelector(".fold").append(fold);
}
placeFold();
roomy.addEventListener("change", placeFold);
function setFolded(folded) {
  fold.hidden = true; // what fits without the button does not need it
  fold.setAttribute("aria-pressed", String(!folded));
  fold.textContent = folded ? "Show all of both" : "Show less of both";
  document.body.classList.toggle("unfolded", !folded);
  measure();
}
function measure() {
  const unfolded = document.body.classList.contains("unfolded");
  const below = (one) => one.scrollHeight - one.clientHeight - one.scrollTop; // what is not visible
  for (const one of outputs) one.classList.toggle("cut", !unfolded && below(one) > 1);
  fold.hidden = !unfolded && !outputs.some((one) => one.scrollHeight > one.clientHeight + 1);
}
for (const one of outputs) one.addEventListener("scroll", measure, { passive: true });
fold.addEventListener("click", () => setFolded(document.body.classList.contains("unfolded")));
addEventListener("resize", measure);
place("instructions")?.addEventListener("toggle", measure);

/** Pictures can be enlarged, and changed for one another at the same place. */
const SIZES = [1, 1.5, 2, 3, 4, 6, 8];
const view = { letter: "a", size: 0, dialog: place("zoom"), frame: place("zoom-view") };
function zoom(letter) {
  const picture = place(`output-${letter}`).querySelector("img");
  const other = letter === "a" ? "b" : "a";
  view.letter = letter;
  place("zoom-title").textContent = picture.alt;
  place("zoom-other").hidden = !place(`output-${other}`).querySelector(".picture");
  place("zoom-other").textContent = `Show ${other.toUpperCase()}`;
  const { scrollLeft, scrollTop } = view.frame;
  view.frame.replaceChildren(element("img", { src: picture.src, alt: picture.alt }));
  if (!view.dialog.open) {
    view.size = 0;
    view.dialog.showModal();
  }
  resize(view.size);
  if (view.size) view.frame.scrollTo(scrollLeft, scrollTop);
}
/** Enlarges the picture around the middle of what is visible. */
function resize(size) {
  const { frame } = view;
  const picture = frame.querySelector("img");
  const middle = [
    (frame.scrollLeft + frame.clientWidth / 2) / frame.scrollWidth,
    (frame.scrollTop + frame.clientHeight / 2) / frame.scrollHeight,
  ];
  view.size = Math.max(0, Math.min(SIZES.length - 1, size));
  frame.classList.toggle("enlarged", view.size > 0);
  picture.style.width = view.size ? `${100 * SIZES[view.size]}%` : "";
  frame.scrollTo(middle[0] * frame.scrollWidth - frame.clientWidth / 2, middle[1] * frame.scrollHeight - frame.clientHeight / 2);
  place("zoom-size").textContent = joinUnits(`${100 * SIZES[view.size]} %`);
}
const zoomOther = () => place("zoom-other").hidden || zoom(view.letter === "a" ? "b" : "a");
place("zoom-in").addEventListener("click", () => resize(view.size + 1));
place("zoom-out").addEventListener("click", () => resize(view.size - 1));
place("zoom-whole").addEventListener("click", () => resize(0));
place("zoom-other").addEventListener("click", zoomOther);
view.dialog.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = { "+": () => resize(view.size + 1), "=": () => resize(view.size + 1), "-": () => resize(view.size - 1), 0: () => resize(0), o: zoomOther };
  const act = keys[event.key.toLowerCase()];
  if (act) {
    event.preventDefault();
    act();
  }
});

document.addEventListener("keydown", (event) => {
  if (help.open || view.dialog.open) return;
  if (event.key === "?" && !event.target.closest?.("input, textarea, select")) {
    help.showModal();
    return;
  }
  if (!keys.checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest?.("input:not([type=checkbox]), textarea, select") || scrolls(event)) return;
  const what = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (what === undefined) return;
  event.preventDefault();
  act(what);
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button || !("winner" in button.dataset || "undo" in button.dataset || ["more", "again"].includes(button.id))) return;
  if (event.pointerType === "touch" || matchMedia("(hover: none)").matches) button.blur(); // no trace of the last answer
  if (button.id === "more") {
    more = true;
    alone(next);
  } else if (button.id === "again") alone(next);
  else act("undo" in button.dataset ? "undo" : button.dataset.winner);
});

/** A frame that was clicked receives the keys. They return to the page when the pointer leaves it. */
for (const output of document.querySelectorAll(".output")) {
  output.addEventListener("pointerleave", () => {
    if (document.activeElement?.tagName === "IFRAME") place("main").focus({ preventScroll: true });
  });
}

const large = /^#large-(\d+)-([ab])$/.exec(location.hash);
if (large) showLarge(Number(large[1]), large[2]).catch(recover);
else {
  setBusy(false);
  alone(next);
}
