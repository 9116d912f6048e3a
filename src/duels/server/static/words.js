/** Error messages for the people who use the pages. The API's are for programs, and name its parameters. */

import { ApiError } from "./api.js";

/** An error that a person can correct; its message is a sentence. */
export class Told extends Error {}

const NAMES = {
  name: "The name or title",
  arms: "The name of an arm",
  voters: "A name",
  votes: "Votes each",
  max_votes: "Max. in total",
  max_votes_per_voter: "Max. per voter",
  max_votes_per_address: "Max. per address",
  expires: "The end",
  question: "The question",
  instructions: "The text of the instructions",
  horizon: "The number of duels",
};
const RULES = [
  [/should have at most (\d+) character/, "may have at most $1 characters"],
  [/should have at least 1 character/, "must not be empty"],
  [/should have at most (\d+) item/, "is one of too many: at most $1 are possible at once"],
  [/greater than or equal to (\d+)/, "must be at least $1"],
  [/less than or equal to (\d+)/, "may be at most $1"],
  [/valid (integer|number)/, "must be a number"],
];
const PLAIN = [
  [/^expires is .*/s, "The end must be a time to come, at most 100 years from now"],
  [/^study_name is .*/s, "The name of a study has 1 to 200 characters, none of them a slash (/), and is not just dots"],
  [/, or say load_if_exists=True \(--load-if-exists\) to load it/, ""],
  [/add them with add_arm first/, "add them on the tab Settings first"],
  [/^max_votes_per_voter is ([\d,]+)/, "Max. per voter is $1"],
  [/^voter is (.*): expected up to 200 characters of text, or None/s, "The name $1 cannot be used: expected up to 200 characters of text"],
  [/^name is (.*): expected/s, "The name or title $1 cannot be used: expected"],
  [/^(question|instructions|votes) is (.*): expected/s, (_, name, value) => `${NAMES[name]} is ${value}: expected`],
];

/** Keeps numbers and their units on one line, as in 95 % and 3 s. */
export function joinUnits(text) {
  return text.replace(/(\d) (?=(?:%|s|ms|min|h|[KMG]i?B)(?!\w))/g, "$1\u00a0");
}

/** A message as a sentence: with a capital letter and a full stop. */
export function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.?!…]$/.test(text) ? "" : "."}`;
}

/** What the API says about a body that does not fit, field by field. */
function ofFields(message) {
  return message
    .replace(/\. See \/docs for what is expected$/, "")
    .split("; ")
    .map((one) => {
      const [, field, rule] = /^body\.([a-z_]+)[^:]*: (.*)$/s.exec(one) ?? [];
      const found = RULES.find(([pattern]) => pattern.test(rule ?? ""));
      const words = found ? found[0].exec(rule).reduce((text, part, i) => text.replace(`$${i}`, part), found[1]) : "cannot be used as it is";
      return sentence(`${NAMES[field] ?? "What you entered"} ${words}`);
    })
    .join(" ");
}

/** Returns what a page shows about an error. */
export function plainly(error) {
  if (error instanceof Told) return error.message;
  if (!(error instanceof ApiError)) return sentence(`Something went wrong: ${error.message}`);
  if (error.status === 422 && error.message.startsWith("body")) return ofFields(error.message);
  return sentence(PLAIN.reduce((text, [pattern, words]) => text.replace(pattern, words), error.message));
}

/** Halves are rounded away from 50, so that the shares of both arms of a pair add up to 100. */
export function percentOf(share) {
  const up = (part) => Math.floor(100 * part + 0.5 + 1e-9);
  return share < 0.5 ? 100 - up(1 - share) : up(share);
}
