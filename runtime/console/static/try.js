// Trying an agent: a chat; another instruction for the next run only; the same input again; two runs side by side.

import { attempt, h, replace, text } from "./dom.js";
import { get } from "./net.js";
import { empty } from "./forms.js";
import { LiveRun, composer } from "./live.js";

const MOST = 20;

export function open(root, { query }) {
  const page = new TryPage(root, query.get("again"));
  page.start();
  return page;
}

class TryPage {
  constructor(root, again) {
    this.root = root;
    this.again = again;
    this.attempts = [];
    this.changed = new Map();
    this.leaving = new AbortController();
  }

  close() {
    this.leaving.abort();
    for (const one of this.attempts) one.live.close();
  }

  async start() {
    try {
      this.agents = await get("agents");
    } catch (error) {
      replace(this.root, h("h1", {}, "Try"), h("p", { class: "problem" }, error.message));
      return;
    }
    if (!this.agents.agent) {
      replace(this.root, h("h1", {}, "Try"), empty("This console was started with a store only. Start it with the file of an agent to try that agent."));
      return;
    }
    this.build();
    if (this.again) await attempt(null, () => this.lookAt(this.again));
  }

  build() {
    const names = Object.keys(this.agents.instructions);
    this.agent = h("select", { "aria-label": "Agent whose instruction to change", onchange: () => this.choose() }, names.map((name) => h("option", { value: name }, name)));
    this.instruction = h("textarea", { rows: "5", "aria-label": "Instruction for the next run only", oninput: () => this.change() });
    this.mark = h("span", { class: "quiet" });
    this.back = h("button", { type: "button", onclick: () => { this.changed.delete(this.agent.value); this.choose(); } }, "Reset");
    this.same = h("button", { type: "button", disabled: true, onclick: () => this.repeat() }, "Same input again");
    this.fresh = h("button", { type: "button", onclick: () => { this.current = null; this.shown(); this.line.field.focus(); } }, "New conversation");
    this.line = composer(`message ${this.agents.agent}`, (words, button) => this.send(words, button));
    this.sides = [h("select", { "aria-label": "Left run" }), h("select", { "aria-label": "Right run" })];
    this.places = this.sides.map((side) => h("section", { class: "card chat" }));
    for (const side of this.sides) side.addEventListener("change", () => this.place());
    const other = h("input", { placeholder: "id of a run to compare", "aria-label": "Id of a run to compare" });
    const compare = h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); if (other.value.trim()) attempt(null, () => this.lookAt(other.value.trim())); } }, other, h("button", {}, "Compare"));
    replace(this.root, h("h1", {}, "Try"),
      h("p", { class: "quiet" }, `These runs call the real models and tools.${this.agents.keeps_runs ? " They are stored with the label offbook.console=try." : " They are not stored."}`),
      names.length ? h("details", { class: "card" }, h("summary", {}, "Instruction, for the next run only ", this.mark), h("div", { class: "row" }, this.agent, this.back), this.instruction) : null,
      h("section", { class: "card" }, this.line.element, h("div", { class: "row wrap" }, this.same, this.fresh, h("span", { class: "grow" }), compare)),
      this.nothing = empty("Your runs appear here, two side by side."),
      h("div", { class: "columns wide", id: "attempts" }, this.places));
    if (names.length) this.choose();
    this.place();
  }

  choose() {
    const name = this.agent.value;
    this.instruction.value = this.changed.get(name) ?? this.agents.instructions[name];
    this.instruction.placeholder = this.agents.instructions[name] ? "" : "this agent generates its instruction for each run; a text here replaces it";
    this.note();
  }

  change() {
    const name = this.agent.value;
    if (this.instruction.value === this.agents.instructions[name]) this.changed.delete(name);
    else this.changed.set(name, this.instruction.value);
    this.note();
  }

  note() {
    text(this.mark, this.changed.size ? `changed: ${[...this.changed.keys()].join(", ")}` : "");
    this.back.disabled = !this.changed.has(this.agent.value);
  }

  async send(words, button) {
    const messages = [...(this.current ? this.current.conversation() : []), { role: "user", text: words }];
    await this.play({ messages }, messages, button);
  }

  async repeat() {
    const one = this.current ?? this.attempts.at(-1);
    if (one) await this.play(one.body, one.messages, this.same);
  }

  async play(body, messages, button) {
    const one = this.add(messages, [...this.changed.keys()]);
    one.body = body;
    this.current = one;
    await attempt(button, () => one.live.say("try", { ...body, instructions: Object.fromEntries(this.changed) }, this.leaving.signal).catch((error) => { one.live.failed(error.message); throw error; }));
    this.line.field.focus();
  }

  // A run that is there already, beside those that are tried.
  async lookAt(id) {
    const asked = await get("run/asked", { id });
    const one = this.add(asked.messages.filter((message) => message.role !== "tool" && message.text).map((message) => ({ role: message.role, text: message.text })), []);
    one.body = { again: id };
    this.current = one;
    one.live.look(id);
  }

  add(messages, changed) {
    const live = new LiveRun();
    for (const message of messages) live.transcript.said(message.role, message.text, message.role === "user" ? "" : this.agents.agent);
    const one = {
      number: (this.attempts.at(-1)?.number ?? 0) + 1, live, messages, changed,
      conversation: () => [...messages, ...(live.final ? [{ role: "assistant", text: live.final }] : [])],
    };
    this.attempts.push(one);
    if (this.attempts.length > MOST) this.attempts.shift().live.close();
    this.same.disabled = false;
    this.shown();
    return one;
  }

  // The two latest, side by side.
  shown() {
    for (const side of this.sides) replace(side, this.attempts.map((one) => h("option", { value: one.number }, `#${one.number} ${one.changed.length ? `(${one.changed.join(", ")} changed)` : ""}`)));
    const [before, last] = [this.attempts.at(-2), this.attempts.at(-1)];
    if (last) {
      this.sides[0].value = (before ?? last).number;
      this.sides[1].value = last.number;
    }
    this.place();
  }

  place() {
    this.nothing.hidden = this.attempts.length > 0;
    this.places.forEach((place, side) => {
      const one = this.attempts.find((known) => String(known.number) === this.sides[side].value);
      const isTwice = side === 0 && this.attempts.length < 2;
      place.hidden = !one || isTwice;
      if (one && !isTwice) {
        replace(place, h("div", { class: "row wrap" }, this.sides[side], one.live.head), one.live.transcript.element, one.live.waiting);
        one.live.transcript.toEnd();
      }
    });
  }
}
