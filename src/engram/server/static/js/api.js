// The API of this server, and nothing else: every request goes through here.

const BASE = "/api/v1";

/** The server understood and refused; the words are its own. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** The server could not be reached, or had no time. */
export class Unreachable extends Error {}

/** What stands for a campaign in a path. */
export function address(name, uid) {
  return name.includes("/") || name === "." || name === ".." ? uid : encodeURIComponent(name);
}

/** The last part of this page's own address, as it stands in a path. */
export function campaignHere() {
  return location.pathname.split("/").filter(Boolean)[1] ?? "";
}

async function answered(method, path, options) {
  const { body, form, key, signal } = options;
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  try {
    return await fetch(BASE + path, {
      method,
      headers,
      signal,
      credentials: "same-origin",
      body: form ?? (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable(String(error.message));
  }
}

/** Send a request; gives what the answer says. */
export async function call(method, path, options = {}) {
  const response = await answered(method, path, options);
  if (response.status === 204) return null;
  let data = null;
  try {
    data = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (response.ok) throw new Unreachable("the answer was cut off");
  }
  if (response.ok) return data;
  throw new Problem(response.status, data?.detail ?? `${response.status} ${response.statusText}`);
}

export const get = (path, options) => call("GET", path, options);
export const post = (path, body, options) => call("POST", path, { ...options, body });
export const put = (path, body, options) => call("PUT", path, { ...options, body });

/** Send to the page for signing in whoever is not signed in. */
export function unlessSignedIn(error) {
  if (error instanceof Problem && error.status === 401) location.assign("/sign-in");
  else throw error;
}

/** Listen to what happens in a campaign; goes on where it was when the connection was lost. */
export class News {
  constructor(where, seq, { event, reset, state }) {
    this.where = where;
    this.seq = seq;
    this.told = { event, reset, state };
    this.open();
  }

  open() {
    const source = new EventSource(`${BASE}/campaigns/${this.where}/events?after=${this.seq}`);
    this.source = source;
    source.addEventListener("hello", () => this.told.state(true));
    source.addEventListener("log", (message) => {
      const event = JSON.parse(message.data);
      this.seq = Math.max(this.seq, event.seq);
      this.told.event(event);
    });
    source.addEventListener("reset", (message) => {
      this.seq = JSON.parse(message.data).seq;
      this.told.reset();
    });
    source.addEventListener("error", () => {
      this.told.state(false);
      if (source.readyState !== EventSource.CLOSED) return;
      this.timer = setTimeout(() => this.open(), 2000);
    });
  }

  close() {
    clearTimeout(this.timer);
    this.source.close();
  }
}
