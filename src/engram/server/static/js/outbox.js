// Reports on their way to the server: kept until it has acknowledged them, each under a key that
// was made here, so that sending one again changes nothing.

import { call, get, post, Problem, Unreachable } from "./api.js";
import { allKept, forget, keep } from "./keeping.js";

const LATER = [401, 408, 425, 429];
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30000;
const PATIENCE = 60000;

/** Whether the same request may be taken later as it is. */
const passes = (error) =>
  error instanceof Unreachable || (error instanceof Problem && (error.status >= 500 || LATER.includes(error.status)));

export class Outbox {
  /** told: changed(), signIn(needed), and sent(report, receipt), before the report is forgotten */
  constructor(told) {
    this.told = told;
    this.reports = [];
    this.busy = null;
    this.pause = FIRST_PAUSE;
    window.addEventListener("online", () => this.send());
    document.addEventListener("visibilitychange", () => document.hidden || this.send());
  }

  async load() {
    this.reports = (await allKept("reports")).sort((a, b) => a.made - b.made);
    this.told.changed();
  }

  of(where) {
    return this.reports.filter((report) => report.where === where);
  }

  /** Keep a report and send it when that is possible: {key, where, what, body, photo}. */
  async add(report) {
    const whole = { ...report, made: Date.now(), state: "waiting", words: "", photoName: null };
    await keep("reports", whole);
    this.reports.push(whole);
    this.told.changed();
    this.send();
  }

  async change(report, fields) {
    Object.assign(report, fields);
    await keep("reports", report);
    this.told.changed();
  }

  async drop(report) {
    await forget("reports", report.key);
    this.reports = this.reports.filter((one) => one !== report);
    this.told.changed();
  }

  async again(report, fields = {}) {
    await this.change(report, { state: "waiting", words: "", ...fields });
    this.send();
  }

  /** Send what waits, one after the other; one page of a browser at a time. */
  send() {
    this.busy ??= this._locked(() => this._send()).finally(() => (this.busy = null));
    return this.busy;
  }

  async _locked(work) {
    if (!navigator.locks) return work();
    return navigator.locks.request("engram-outbox", { ifAvailable: true }, (lock) => (lock ? work() : this._later()));
  }

  _later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), this.pause);
    this.pause = Math.min(LONGEST_PAUSE, 2 * this.pause);
  }

  async _send() {
    for (;;) {
      const report = this.reports.find((one) => one.state === "waiting");
      if (!report) return;
      try {
        await this._one(report);
      } catch (error) {
        if (!passes(error)) throw error;
        this.told.signIn(error.status === 401);
        this._later();
        return;
      }
      this.pause = FIRST_PAUSE;
    }
  }

  /** Send one report; what the server refuses for good is kept and shown. */
  async _one(report) {
    try {
      if (report.photo && !report.photoName) {
        const form = new FormData();
        form.set("file", report.photo, "photo.jpg");
        const { photo } = await call("POST", `/campaigns/${report.where}/photos`, { form, signal: AbortSignal.timeout(PATIENCE) });
        await this.change(report, { photoName: photo });
      }
      const photo = report.photoName ? { photo: report.photoName } : {};
      const body = { ...report.body, ...photo, key: report.key };
      const receipt = await post(`/campaigns/${report.where}/${report.what}`, body, { signal: AbortSignal.timeout(PATIENCE) });
      this.told.signIn(false);
      await this.told.sent(report, receipt);
      await this.drop(report);
    } catch (error) {
      if (!(error instanceof Problem) || passes(error)) throw error;
      const state = error.status === 409 ? "conflict" : "refused";
      const theirs = state === "conflict" ? await this._theirs(report) : null;
      await this.change(report, { state, words: error.message, theirs });
    }
  }

  /** What the log says of the cell in the meantime. */
  async _theirs(report) {
    const [row, col] = report.body.cell;
    const { events } = await get(`/campaigns/${report.where}/cells/${row}/${col}`);
    return events.filter((event) => event.kind !== "ask").map(({ kind, by, at, text }) => ({ kind, by, at, text }));
  }
}
