// One run: what happens, who is at work, what is kept of it, and what can be done with it.

import { attempt, h, notice, replace, sure, text } from "./dom.js";
import { every, follow, get, post } from "./net.js";
import { ago, count, date, empty, isRunning, json, sessionLink, setStatus, span, statusOf, tokens } from "./forms.js";
import { answerCard, answered } from "./answerform.js";
import { EventList } from "./eventlist.js";
import { ModelCalls } from "./modelcalls.js";
import { Timeline } from "./timeline.js";
import { Transcript } from "./transcript.js";
import { Tree } from "./tree.js";

const LATEST = 5000;  // events of a long run that are looked at first
const VIEWS = [["said", "Transcript"], ["events", "Events"], ["timeline", "Timeline"], ["values", "Values"], ["calls", "Model calls"], ["steps", "Steps"]];

export function open(root, { id, query }) {
  const page = new RunPage(root, id, query.get("view"));
  page.start();
  return page;
}

class RunPage {
  constructor(root, id, view) {
    this.root = root;
    this.id = id;
    this.view = VIEWS.some(([name]) => name === view) ? view : "said";
    this.seq = 0;
    this.info = null;
    this.source = null;
    this.state = h("span", { class: "status" }, "…");
    this.facts = h("dl", { class: "facts" });
    this.problem = h("p", { class: "problem", hidden: true });
    this.waiting = h("div", { class: "cards" });
    this.who = h("ul", { class: "list plain" });
    this.saves = h("ul", { class: "list plain" });
    this.transcript = new Transcript();
    this.events = new EventList();
    this.values = h("div", {});
    this.calls = new ModelCalls(this.id);
    this.steps = h("div", {});
    this.stopping = [];
  }

  async start() {
    replace(this.root, h("p", { class: "quiet" }, "Loading…"));
    try {
      [this.info, this.agents] = await Promise.all([get("run", { id: this.id }), get("agents")]);
    } catch (error) {
      replace(this.root, h("h1", { class: "id" }, this.id), h("p", { class: "problem" }, error.message), h("a", { href: "#/runs" }, "All runs"));
      return;
    }
    this.tree = new Tree(this.agents, this.info.agent);
    this.timeline = new Timeline(this.info.started);
    this.build();
    this.show(this.info);
    await this.loadAsked();
    this.stopping.push(every(2000, () => this.look(), (error) => this.trouble(error.message)));
    this.seq = Math.max(0, this.info.steps - LATEST);
    this.events.beginsAfter(this.seq, () => {
      this.seq = 0;
      this.events.clear();
      this.transcript.clear();
      this.events.beginsAfter(0);
      this.timeline = new Timeline(this.info.started);
      this.watch();
    });
    this.watch();
  }

  // What it was begun with. Nothing is said where that is not kept.
  async loadAsked() {
    try {
      const asked = await get("run/asked", { id: this.id });
      if (asked.before) this.transcript.push([{ kind: "custom", agent: "", custom_output: `${count(asked.before)} earlier messages in its session` }]);
      for (const message of asked.messages.slice(asked.before)) this.transcript.said(message.role, message.text);
    } catch (error) {
      if (error.status !== 404 && error.status !== 422) this.trouble(error.message);
    }
  }

  close() {
    this.source?.();
    for (const stop of this.stopping) stop();
  }

  build() {
    const { info } = this;
    this.buttons = {
      mode: h("select", { "aria-label": "How to cancel" }, [["immediate", "immediately"], ["after_model", "after the model call"], ["after_tools", "after the tool calls"]].map(([value, words]) => h("option", { value }, words))),
      cancel: h("button", { type: "button", class: "danger", onclick: () => this.cancel() }, "Cancel"),
      retry: h("button", { type: "button", onclick: () => this.act("retry", "retry", {}) }, "Retry"),
      resume: h("button", { type: "button", onclick: () => this.act("resume", "resume", {}) }, "Resume"),
      again: h("a", { class: "button", href: `#/try?again=${encodeURIComponent(this.id)}` }, "Try again…"),
      forget: h("button", { type: "button", onclick: () => this.forget() }, "Delete"),
    };
    this.tabs = h("div", { class: "tabs", role: "tablist" }, VIEWS.map(([name, title]) => h("button", { type: "button", role: "tab", data: { view: name }, onclick: () => this.turn(name) }, title)));
    this.panel = h("div", { class: "panel", role: "tabpanel" });
    replace(this.root,
      h("div", { class: "row wrap head" }, h("h1", { class: "id" }, this.id), this.state, h("span", { class: "grow" }), h("span", { class: "row wrap" }, this.buttons.cancel, this.buttons.mode, this.buttons.retry, this.buttons.resume, this.buttons.again, this.buttons.forget)),
      this.problem, this.facts, this.waiting,
      h("div", { class: "columns side" },
        h("section", { class: "card" }, this.tabs, this.panel),
        h("div", {},
          h("section", { class: "card" }, h("h2", {}, "Agents"), this.tree.element),
          this.whoCard = h("section", { class: "card", hidden: true }, h("h2", {}, "Answered"), this.who),
          this.savesCard = h("section", { class: "card", hidden: true }, h("h2", {}, "Checkpoints"), this.saves, this.saveForm = h("div", {})))));
    this.turn(this.view);
    if (!info.can_go_on) this.buttons.again.hidden = true;
  }

  show(info) {
    const changed = !this.shownStatus || this.shownStatus !== statusOf(info) || this.shownWaiting !== JSON.stringify(info.waiting.map((one) => one.id));
    this.info = info;
    setStatus(this.state, statusOf(info));
    const isOpen = info.status === "running";
    const end = info.ended ?? (isRunning(info) ? Date.now() / 1000 : info.updated);
    const facts = [["agent", info.agent], ["session", info.session_id ? sessionLink(info.session_id) : null], ["started", `${date(info.started)} (${ago(info.started)})`], [info.ended ? "duration" : "for", span(end - info.started)],
      ["tokens", tokens(info.usage)], ["requests", count(info.usage.requests)], ["events", count(Math.max(info.steps, this.seq))], ["last agent", info.last_agent], ["lost processes", info.attempts ? count(info.attempts) : null],
      ["labels", Object.entries(info.labels).map(([name, value]) => h("span", { class: "label" }, `${name}=${value}`))], ["error", info.error ? h("span", { class: "error" }, info.error) : null]];
    replace(this.facts, facts.filter(([, value]) => (Array.isArray(value) ? value.length : value)).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    const { buttons } = this;
    buttons.cancel.hidden = buttons.mode.hidden = !isOpen;
    buttons.retry.hidden = info.status !== "stuck" || !info.can_go_on;
    buttons.resume.hidden = info.status !== "cancelled" || !info.can_go_on;
    buttons.forget.hidden = isOpen;
    this.tree.running(isRunning(info));
    if (changed) {
      this.shownStatus = statusOf(info);
      this.shownWaiting = JSON.stringify(info.waiting.map((one) => one.id));
      replace(this.waiting, info.waiting.map((context) => answerCard(info, context, () => this.look(), { withRun: false, canGoOn: info.can_go_on })));
      this.lookAside();
    }
  }

  async look() {
    const before = this.info.status;
    const info = await get("run", { id: this.id });
    this.problem.hidden = true;
    this.show(info);
    if (info.status === "running" && before !== "running") this.watch();
    if (this.view === "timeline" && (info.status === "running" || before === "running")) await this.drawTimeline();
    if (this.view === "calls" && (info.status === "running" || before === "running")) await this.calls.look();
    if (this.view === "steps" && info.status === "running") await this.moreSteps();
  }

  async lookAside() {
    try {
      const [saves, notes] = await Promise.all([get("run/saves", { id: this.id }), get("run/answers", { id: this.id })]);
      this.savesCard.hidden = !saves.length;
      replace(this.saves, saves.map((save, position) => h("li", {}, h("span", { class: "id grow", title: save.id }, `@${save.number}`), h("span", { class: "quiet" }, save.answered ? "answered" : position ? "" : "latest"),
        this.info.can_go_on ? h("button", { type: "button", title: "resume from here; if it was already answered, as a branch with its own id", onclick: (event) => this.goOnFrom(save, event.currentTarget) }, "Resume") : null)));
      this.whoCard.hidden = !notes.length;
      replace(this.who, answered(notes));
    } catch (error) {
      this.trouble(error.message);
    }
  }

  watch() {
    this.source?.();
    this.source = follow(this.id, this.seq, {
      events: (events) => this.took(events),
      end: (result) => {
        if (result.error && !this.info.error) this.info.error = result.error.message;
        this.look().catch((error) => this.trouble(error.message));
      },
      problem: ({ error }) => { if (!this.seq) text(this.lost ??= this.panel.appendChild(empty("")), error); },
    });
  }

  took(events) {
    const fresh = events.filter((event) => event.seq > this.seq);
    if (!fresh.length) return;
    this.seq = fresh.at(-1).seq;
    this.events.push(fresh);
    this.transcript.push(fresh);
    this.timeline.push(fresh);
    this.tree.push(fresh);
  }

  turn(view) {
    this.view = view;
    for (const tab of this.tabs.children) tab.setAttribute("aria-selected", String(tab.dataset.view === view));
    const element = { said: this.transcript.element, events: this.events.element, timeline: this.timeline.element, values: this.values, calls: this.calls.element, steps: this.steps }[view];
    replace(this.panel, element);
    if (view === "events") this.events.later();
    if (view === "said") this.transcript.toEnd();
    if (view === "timeline") attempt(null, () => this.drawTimeline());
    if (view === "values") attempt(null, () => this.loadValues());
    if (view === "calls") attempt(null, () => this.calls.look());
    if (view === "steps") attempt(null, () => this.loadSteps());
  }

  // While it runs, by what the page sees; once it rests, by what the store knows, which takes reading all of it.
  async drawTimeline() {
    if (isRunning(this.info)) {
      this.timeline.draw(Date.now() / 1000);
      return;
    }
    try {
      this.timeline.drawKept(await get("run/timeline", { id: this.id }));
    } catch (error) {
      if (error.status !== 404 && error.status !== 422) throw error;
      this.timeline.draw();  // its steps are not kept
    }
  }

  async loadValues() {
    const values = await get("run/values", { id: this.id });
    replace(this.values, Object.keys(values).length ? json(values) : empty("The run has no session values."));
  }

  async loadSteps() {
    this.stepCount = 0;
    this.stepRows = h("tbody", {});
    this.stepMore = h("button", { type: "button", hidden: true, onclick: () => attempt(this.stepMore, () => this.moreSteps()) }, "More");
    replace(this.steps, h("div", { class: "scroll" }, h("table", { class: "steps" }, h("thead", {}, h("tr", {}, h("th", { class: "number" }, "Step"), h("th", {}, "Changes"), h("th", { class: "number" }, "Bytes"))), this.stepRows)), this.stepMore);
    await this.moreSteps();
  }

  async moreSteps() {
    if (this.stepRows === undefined) return;
    const found = await get("run/steps", { id: this.id, after: this.stepCount });
    this.stepRows.append(...found.steps.map((step) => h("tr", {}, h("td", { class: "number" }, step.number), h("td", {}, step.changes.map((change) => h("div", { class: "change" }, h("b", {}, change.kind), " ", change.text))), h("td", { class: "number" }, count(step.bytes)))));
    this.stepCount += found.steps.length;
    this.stepMore.hidden = !found.more;
    if (!found.kept) replace(this.steps, empty("The steps of this run are not recorded. Set durability=\"step\" on its Runner."));
  }

  // From a save at which it waited for something, with another answer; or from one at which it was cancelled.
  async goOnFrom(save, button) {
    await attempt(button, async () => {
      const waiting = await get("run/save", { id: this.id, save: save.id });
      if (!waiting.length) {
        await this.act("resume", "resume", { save: save.id }, null);
        return;
      }
      const done = (state) => { if (state.id !== this.id) location.hash = `#/run/${encodeURIComponent(state.id)}`; else return this.look(); };
      replace(this.saveForm, h("p", { class: "quiet" }, `Resume from ${save.id}, as a branch if it was already answered:`), waiting.map((context) => answerCard({ ...this.info, save: save.id }, context, done, { withRun: false })));
      this.saveForm.querySelector("textarea, button")?.focus();
    });
  }

  async act(name, path, body, button = this.buttons[name]) {
    await attempt(button, async () => {
      const state = await (await post(`run/${path}`, { id: this.id, ...body })).json();
      if (state.id !== this.id) {
        notice(`The run continues as branch ${state.id}.`);
        location.hash = `#/run/${encodeURIComponent(state.id)}`;
        return;
      }
      notice(`The run is ${state.status}.`);
      await this.look();
      this.watch();
    });
  }

  async cancel() {
    if (!await sure(`Cancel run ${this.id}?`, "Cancel the run")) return;
    await attempt(this.buttons.cancel, async () => {
      await post("run/cancel", { id: this.id, mode: this.buttons.mode.value });
      notice("Cancellation was requested.");
      await this.look();
    });
  }

  async forget() {
    if (!await sure(`Delete run ${this.id}, with its steps, its checkpoints and its entry in the list?`, "Delete the run")) return;
    await attempt(this.buttons.forget, async () => {
      await post("run/forget", { id: this.id });
      notice("The run is deleted.");
      location.hash = "#/runs";
    });
  }

  trouble(message) {
    this.problem.hidden = false;
    text(this.problem, message);
  }

  key(event) {
    const step = { "[": -1, "]": 1 }[event.key];
    if (!step || !this.tabs) return false;
    const at = VIEWS.findIndex(([name]) => name === this.view);
    this.turn(VIEWS[(at + step + VIEWS.length) % VIEWS.length][0]);
    return true;
  }
}
