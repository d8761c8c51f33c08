// What was said, by agent. Messages that still come in pieces grow in place; calls of tools are folded.

import { h, text } from "./dom.js";
import { pretty, short } from "./forms.js";

const MOST = 300;
const FAST = 100;  // events in a second: more cannot be read, and are not all shown
const AT_ONCE = 25;

export class Transcript {
  constructor() {
    this.list = h("div", { class: "said", role: "log", "aria-live": "off" });
    this.note = h("p", { class: "quiet", hidden: true });
    this.element = h("div", { class: "transcript" }, this.note, this.list);
    this.follows = true;  // whether the end stays in view as the transcript grows: until a reader scrolls up
    this.top = 0;
    this.element.addEventListener("scroll", () => this.scrolled());
    // Bubbles get their real height only when they come into view, after they were appended.
    new ResizeObserver(() => { if (this.follows) this.toEnd(); }).observe(this.list);
    this.left = 0;
    this.growing = new Map();  // invocation -> the bubble of a message that still comes
    this.calls = new Map();  // id of a call -> its element
    this.speaker = null;
    this.waiting = [];
    this.frame = 0;
    this.second = 0;  // of which it is counted what comes
    this.coming = 0;
    this.isFast = false;
  }

  // Many events may come at once: they are shown with the next frame. What would be pushed out again at once is not made.
  push(events) {
    this.measure(events);
    for (const event of events) this.waiting.push(event);
    this.later();
  }

  later() {
    if (this.frame) return;
    this.frame = this.isFast ? setTimeout(() => requestAnimationFrame(() => this.render()), 250) : requestAnimationFrame(() => this.render());
  }

  // Whether more happens now than can be read. What happened before does not count.
  measure(events) {
    const now = Date.now() / 1000;
    const second = Math.floor(now);
    if (second !== this.second) {
      this.isFast = second === this.second + 1 && this.coming > FAST;
      this.second = second;
      this.coming = 0;
    }
    for (const event of events) if (event.kind !== "delta" && event.timestamp > now - 5) this.coming++;
    if (this.coming > FAST) this.isFast = true;
  }

  render() {
    this.frame = 0;
    const begun = performance.now();
    if (this.waiting.length > MOST) {
      this.left += this.waiting.length - MOST;
      this.waiting = this.waiting.slice(-MOST);
      this.growing.clear();
    }
    if (this.isFast && this.waiting.length > AT_ONCE) {
      const skipped = this.waiting.length - AT_ONCE;
      this.waiting.splice(0, skipped);
      this.growing.clear();
      this.speaker = null;
      this.list.append(h("p", { class: "line" }, `… ${skipped.toLocaleString("en")} more: see the events`));
    }
    let done = 0;
    while (done < this.waiting.length && (done % 8 || performance.now() - begun < 5)) this.add(this.waiting[done++]);
    this.waiting.splice(0, done);
    while (this.list.children.length > MOST) {
      this.list.firstElementChild.remove();
      this.left++;
    }
    this.note.hidden = this.left === 0;
    text(this.note, `${this.left.toLocaleString("en")} earlier items are not shown here: see the events.`);
    if (this.follows) this.toEnd();
    if (this.waiting.length) this.later();
  }

  isAtEnd() {
    const box = this.element;
    return box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  }

  // Only a reader scrolls up: what is appended moves the end down and leaves the position where it is.
  scrolled() {
    const { scrollTop } = this.element;
    if (this.isAtEnd()) this.follows = true;
    else if (scrollTop < this.top - 1) this.follows = false;
    this.top = scrollTop;
  }

  toEnd() {
    this.follows = true;
    this.element.scrollTop = this.element.scrollHeight;
  }

  clear() {
    this.list.replaceChildren();
    this.waiting = [];
    this.growing.clear();
    this.calls.clear();
    this.speaker = null;
    this.left = 0;
  }

  said(role, words, agent) {
    this.push([{ kind: "message", agent: agent ?? "", message: { role, text: words } }]);
  }

  add(event) {
    if (event.kind === "delta") this.grow(event);
    else if (event.kind === "retry") this.drop(event);
    else {
      if (event.message) this.message(event, event.message);
      if (event.error) this.line(event, "error", `${event.error.type}: ${event.error.message}`);
      if (event.action) this.action(event, event.action);
      if (event.custom_output !== undefined) this.line(event, "custom", pretty(event.custom_output));
    }
  }

  bubble(event, role) {
    const speaker = `${role} ${event.agent}`;
    const words = h("div", { class: "text" });
    const element = h("article", { class: `bubble ${role}` }, speaker === this.speaker ? null : h("header", { title: (event.run_path ?? []).join(" › ") }, event.agent || role), words);
    this.speaker = speaker;
    this.list.append(element);
    return { element, words };
  }

  grow(event) {
    const { delta } = event;
    let bubble = this.growing.get(event.invocation_id);
    if (!bubble) {
      if (!delta.text && !delta.reasoning) return;
      bubble = { ...this.bubble(event, "assistant"), node: document.createTextNode(""), thought: null };
      bubble.element.classList.add("growing");
      bubble.words.append(bubble.node);
      this.growing.set(event.invocation_id, bubble);
    }
    if (delta.reasoning) {
      if (!bubble.thought) {
        bubble.thought = document.createTextNode("");
        bubble.words.before(h("details", { class: "thought" }, h("summary", {}, "reasoning"), h("p", {}, bubble.thought)));
      }
      bubble.thought.appendData(delta.reasoning);
    }
    if (delta.text) bubble.node.appendData(delta.text);
  }

  drop(event) {
    this.growing.get(event.invocation_id)?.element.remove();
    this.growing.delete(event.invocation_id);
    this.speaker = null;
  }

  message(event, message) {
    if (message.role === "tool") {
      this.result(event, message);
      return;
    }
    let bubble = this.growing.get(event.invocation_id);
    this.growing.delete(event.invocation_id);
    if (bubble) bubble.element.classList.remove("growing");
    else if (message.text || message.reasoning || message.refusal) bubble = this.bubble(event, message.role);
    if (bubble && !message.text && !message.refusal && !message.reasoning && !message.parts) {
      bubble.element.remove();
      this.speaker = null;
    } else if (bubble) {
      text(bubble.words, message.text || message.refusal || "");
      if (message.reasoning && !bubble.thought) bubble.words.before(h("details", { class: "thought" }, h("summary", {}, "reasoning"), h("p", {}, message.reasoning)));
      for (const part of message.parts ?? []) {
        if (part.type !== "text") bubble.words.after(h("p", { class: "part" }, `${part.type} ${part.name ?? part.media_type ?? ""} ${short(part.url ?? part.data ?? "", 80)}`));
      }
    }
    for (const call of message.tool_calls ?? []) this.call(event, call);
  }

  call(event, call) {
    const state = h("span", { class: "state" }, "…");
    const result = h("pre", { class: "json", hidden: true });
    const element = h("details", { class: "call" },
      h("summary", {}, h("b", {}, call.name), " ", h("code", {}, short(call.arguments ?? "", 90)), " ", state), h("pre", { class: "json" }, pretty(call.arguments ?? "")), result);
    if (`assistant ${event.agent}` !== this.speaker) {
      this.list.append(h("article", { class: "bubble assistant calls" }, h("header", {}, event.agent), element));
      this.speaker = `assistant ${event.agent}`;
    } else this.list.append(element);
    this.calls.set(call.id, { state, result });
    if (this.calls.size > MOST) this.calls.delete(this.calls.keys().next().value);
  }

  result(event, message) {
    const call = this.calls.get(message.tool_call_id);
    if (call) {
      text(call.state, `→ ${short(message.text ?? "", 120)}`);
      text(call.result, pretty(message.text ?? ""));
      call.result.hidden = false;
    } else this.line(event, "tool", `${message.tool_name ?? "tool"} → ${message.text ?? ""}`);
  }

  action(event, action) {
    if (action.type === "transfer") this.line(event, "action", `transfers to ${action.agent}`);
    else if (action.type === "interrupted") this.line(event, "asks", `waiting for: ${(action.contexts ?? []).map((one) => one.info?.tool_name ?? (typeof one.info === "string" ? one.info : one.address.at(-1)?.name)).join(", ")}`);
    else if (action.type !== "exit" || !event.message) this.line(event, "action", action.type === "custom" ? pretty(action.value) : action.type.replace("_", " "));
  }

  line(event, kind, words) {
    this.speaker = null;
    this.list.append(h("p", { class: `line ${kind}` }, h("b", {}, event.agent ?? ""), " ", words));
  }
}
