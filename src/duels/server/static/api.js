/** Requests to the API of this server. */

const csrf = document.querySelector('meta[name="csrf-token"]')?.content ?? "";

/** An error response. `retry` is in seconds; null if the server did not send it. */
export class ApiError extends Error {
  constructor(status, message, retry) {
    super(message);
    this.status = status;
    this.retry = retry;
  }
}

/** Sends a request and returns the JSON of the response, or null if it is empty. A body is sent as JSON, a file as is. */
export async function call(method, path, body) {
  const headers = { "X-CSRF-Token": csrf, Accept: "application/json" };
  const isFile = body instanceof Blob;
  if (body !== undefined) headers["Content-Type"] = isFile ? mediaType(body) : "application/json";
  const response = await fetch(path, {
    method,
    headers,
    body: body === undefined || isFile ? body : JSON.stringify(body),
    credentials: "same-origin",
    cache: "no-store",
  });
  const text = await response.text();
  if (response.ok) return text ? JSON.parse(text) : null;
  const after = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  throw new ApiError(response.status, messageIn(text, response), Number.isNaN(after) ? null : after);
}

function messageIn(text, response) {
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `the server answered ${response.status} ${response.statusText}`;
  }
}

function mediaType(file) {
  if (/\.parquet$/i.test(file.name ?? "")) return "application/vnd.apache.parquet";
  return /\.(csv|tsv)$/i.test(file.name ?? "") ? "text/csv" : "application/x-ndjson";
}

/** The URL of a study in the API. */
export function at(study, ...parts) {
  return ["/api/studies", study, ...parts].map((part, i) => (i ? encodeURIComponent(part) : part)).join("/");
}
