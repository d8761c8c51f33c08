// All events of a run, as lines. Only those that are in sight are elements: the list may be as long as it likes.

import { h, replace, text } from "./dom.js";
import { clock, json, line, short } from "./forms.js";

const ROW = 26;
const MOST = 20000;

export class EventList {
  constructor() {
    this.all = [];
    this.shown = this.all;
    this.left = 0;
    this.total = 0;
    this.selected = null;
    this.words = "";
    this.frame = 0;
    this.rows = [];
    this.space = h("div", { class: "space" });
    this.box = h("div", { class: "events", tabindex: "0", role: "listbox", "aria-label": "Events", onscroll: () => this.later(), onkeydown: (event) => this.key(event) }, this.space);
    this.detail = h("div", { class: "detail" });
    this.number = h("span", { class: "quiet", id: "event-count" });
    this.search = h("input", { type: "search", placeholder: "agent or text", "aria-label": "Show only events with this text", oninput: () => this.filter(this.search.value) });
    this.earlier = h("button", { type: "button", hidden: true }, "From the beginning");
    this.element = h("div", { class: "eventlist" }, h("div", { class: "row wrap" }, this.search, this.number, this.earlier), this.box, this.detail);
  }

  // Those before that number are not here.
  beginsAfter(number, load) {
    this.earlier.hidden = number === 0;
    this.earlier.onclick = load;
    text(this.earlier, `From the beginning: ${number.toLocaleString("en")} more`);
  }

  clear() {
    this.all = this.shown = [];
    this.left = this.total = 0;
    this.filter(this.words);
  }

  push(events) {
    this.total += events.length;
    for (const event of events) {
      this.all.push(event);
      if (this.shown !== this.all && this.matches(event)) this.shown.push(event);
    }
    if (this.all.length > MOST * 1.2) {
      const gone = this.all.length - MOST;
      this.left += gone;
      this.all.splice(0, gone);
      if (this.shown !== this.all) this.shown = this.all.filter((event) => this.matches(event));
    }
    this.later();
  }

  matches(event) {
    return event.agent.toLowerCase().includes(this.words) || line(event).toLowerCase().includes(this.words);
  }

  filter(words) {
    this.words = words.trim().toLowerCase();
    this.shown = this.words ? this.all.filter((event) => this.matches(event)) : this.all;
    this.box.scrollTop = 0;
    this.height = -1;
    this.later();
  }

  later() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.render());
  }

  render() {
    this.frame = 0;
    text(this.number, `${this.total.toLocaleString("en")} events${this.left ? `, the latest ${this.all.length.toLocaleString("en")} shown` : ""}`);
    if (!this.box.clientHeight) return;  // out of sight
    const height = this.shown.length * ROW;
    if (height !== this.height) {
      const follows = this.height === undefined || (this.box.scrollTop + this.box.clientHeight >= this.height - 2 * ROW && this.height !== -1);
      this.space.style.height = `${height}px`;
      this.height = height;
      if (follows) this.box.scrollTop = height;
    }
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 3);
    const count = Math.min(this.shown.length - first, Math.ceil(this.box.clientHeight / ROW) + 6);
    while (this.rows.length < count) this.rows.push(this.row());
    this.rows.forEach((row, position) => {
      const event = position < count ? this.shown[first + position] : null;
      row.element.hidden = !event;
      if (event) this.put(row, event, first + position);
    });
  }

  row() {
    const parts = { number: h("span", { class: "number" }), time: h("time", {}), agent: h("span", { class: "agent" }), kind: h("span", { class: "kind" }), words: h("span", { class: "words" }) };
    const element = h("div", { class: "event", role: "option", onclick: () => this.select(row.event) }, Object.values(parts));
    const row = { element, parts, event: null };
    this.space.append(element);
    return row;
  }

  put(row, event, position) {
    row.element.style.transform = `translateY(${position * ROW}px)`;
    row.element.setAttribute("aria-selected", String(event === this.selected));
    if (row.event === event) return;
    row.event = event;
    row.element.dataset.kind = event.message?.role === "tool" ? "tool" : event.kind;
    text(row.parts.number, event.seq);
    text(row.parts.time, clock(event.timestamp));
    text(row.parts.agent, event.agent);
    text(row.parts.kind, event.message?.tool_calls ? "calls" : row.element.dataset.kind);
    text(row.parts.words, short(line(event), 400));
  }

  select(event) {
    this.selected = event;
    replace(this.detail, event ? json(event) : null);
    this.later();
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !this.shown.length) return;
    event.preventDefault();
    const at = this.selected ? this.shown.indexOf(this.selected) : this.shown.length - 1;
    const next = Math.min(this.shown.length - 1, Math.max(0, at + step));
    this.select(this.shown[next]);
    const top = next * ROW;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + ROW > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + ROW - this.box.clientHeight;
  }
}
