// Something said to an agent, and what comes back: as the pages Sessions and Try have it.

import { h, text } from "./dom.js";
import { follow, get, stream } from "./net.js";
import { answerCard } from "./answerform.js";
import { count, runLink, setStatus, span } from "./forms.js";
import { Transcript } from "./transcript.js";

// A run that is seen here from its beginning: its transcript, facts, and what it waits for.
export class LiveRun {
  constructor(transcript = new Transcript()) {
    this.transcript = transcript;
    this.id = null;
    this.seq = 0;
    this.status = h("span", { class: "status running" }, "running");
    this.facts = h("span", { class: "quiet" });
    this.link = h("span", {});
    this.head = h("div", { class: "row wrap" }, this.status, this.link, this.facts);
    this.waiting = h("div", {});
    this.final = "";
    this.begun = performance.now();
    this.stop = null;
  }

  async say(path, body, signal) {
    this.begun = performance.now();
    let first = null;
    await stream(path, body, {
      run: ({ run_id }) => this.named(run_id),
      events: (events) => {
        first ??= performance.now() - this.begun;
        this.took(events);
      },
      end: (result) => this.ended(result, first),
      problem: ({ error }) => this.failed(error),
      closed: () => this.failed("The console was stopped. The run continues if it is stored."),
    }, signal);
  }

  // One that is kept already, or goes on after an answer.
  look(id) {
    this.named(id);
    this.stop?.();
    setStatus(this.status, "running");
    return new Promise((resolve) => {
      this.stop = follow(id, this.seq, {
        events: (events) => this.took(events),
        end: (result) => { this.ended(result); resolve(); },
        problem: ({ error }) => { this.failed(error); resolve(); },
      });
    });
  }

  named(id) {
    this.id = id;
    this.link.replaceChildren(runLink(id));
  }

  took(events) {
    const fresh = events.filter((event) => event.seq > this.seq || event.kind === "delta");
    this.seq = Math.max(this.seq, ...events.map((event) => event.seq));
    this.transcript.push(fresh);
  }

  ended(result, first) {
    this.result = result;
    this.final = result.text ?? "";
    setStatus(this.status, result.status);
    const parts = [span((performance.now() - this.begun) / 1000)];
    if (first) parts.push(`first text after ${span(first / 1000)}`);
    parts.push(`${count(result.usage.input_tokens)} + ${count(result.usage.output_tokens)} tokens`);
    text(this.facts, parts.join(", "));
    if (result.error) this.transcript.push([{ kind: "error", agent: result.last_agent, error: result.error }]);
    if (result.status === "interrupted") this.ask();
  }

  failed(message) {
    setStatus(this.status, "failed");
    this.transcript.push([{ kind: "error", agent: "", error: { type: "Console", message } }]);
  }

  async ask() {
    try {
      const run = await get("run", { id: this.id });
      this.waiting.replaceChildren(...run.waiting.map((context) => answerCard(run, context, () => {
        this.waiting.replaceChildren();
        return this.look(this.id).then(() => this.onended?.());
      }, { withRun: false, canGoOn: run.can_go_on })));
    } catch (error) {
      this.failed(error.message);
    }
  }

  close() {
    this.stop?.();
  }
}

// A field in which one writes, and sends with a key.
export function composer(label, send) {
  const field = h("textarea", { rows: "2", placeholder: label, "aria-label": label });
  const button = h("button", { type: "submit", class: "main" }, "Send");
  const go = (event) => {
    event?.preventDefault();
    const words = field.value.trim();
    if (!words || button.disabled) return;
    field.value = "";
    send(words, button);
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey || !event.shiftKey) && !event.isComposing) go(event);
  });
  return { element: h("form", { class: "composer row", onsubmit: go }, field, button), field, button };
}
