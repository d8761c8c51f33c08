// How numbers, times and states are written.

import { h, text } from "./dom.js";

export const count = (number, more) => (number ?? 0).toLocaleString("en") + (more ? "+" : "");

export function rate(number) {
  if (number === null || number === undefined) return "–";
  return number >= 100 ? Math.round(number).toLocaleString("en") : number >= 10 ? number.toFixed(1) : number.toFixed(2);
}

export function span(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export const ago = (moment) => {
  const seconds = Math.max(0, Date.now() / 1000 - moment);
  return seconds < 2 ? "now" : `${seconds < 60 ? `${Math.floor(seconds)} s` : span(seconds)} ago`;
};

export const clock = (moment) => new Date(moment * 1000).toLocaleTimeString("en-GB");
export const date = (moment) => new Date(moment * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
export const short = (value, length = 60) => (value.length > length ? `${value.slice(0, length - 1)}…` : value);

// The status of a run that is listed as running and that no process works on.
export const LOST = "no process";
export const isRunning = (run) => run.status === "running" && !run.is_lost;
export const statusOf = (run) => (run.is_lost ? LOST : run.status);

export const status = (value) => h("span", { class: `status ${value.replace(" ", "-")}` }, value);
export function setStatus(element, value) {
  text(element, value);
  element.className = `status ${value.replace(" ", "-")}`;
}

export const runLink = (id, label) => h("a", { href: `#/run/${encodeURIComponent(id)}`, class: "id", title: id }, short(label ?? id, 28));
export const sessionLink = (id) => h("a", { href: `#/session/${encodeURIComponent(id)}`, class: "id", title: id }, short(id, 28));

// JSON text in lines, with each number and string as it stands there.
function laidOut(value) {
  const lines = [];
  let line = "", depth = 0, before = "";
  for (const [piece] of value.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^ \t\r\n{}[\],:"]+/g)) {
    const opens = before === "{" || before === "[", closes = piece === "}" || piece === "]";
    if (closes) depth -= 1;
    if (opens !== closes && (opens || closes) || before === ",") {
      lines.push(line);
      line = "  ".repeat(Math.min(depth, 20));
    }
    line += piece === ":" ? ": " : piece;
    if (piece === "{" || piece === "[") depth += 1;
    before = piece;
  }
  return [...lines, line].join("\n");
}

export function pretty(value) {
  if (typeof value === "string") {
    try {
      JSON.parse(value); // only to see that it is JSON: what is shown is the text itself, whose numbers a browser would round
    } catch {
      return value;
    }
    return laidOut(value);
  }
  return JSON.stringify(value, null, 2);
}

export const json = (value) => h("pre", { class: "json", tabindex: "0" }, pretty(value));

export const empty = (words) => h("p", { class: "empty" }, words);

export const tokens = (usage) => `${count(usage?.input_tokens)} in, ${count(usage?.output_tokens)} out`;

// One line for an event.
export function line(event) {
  const message = event.message;
  if (event.error) return `${event.error.type}: ${event.error.message}`;
  if (event.action?.type === "interrupted") return `waits for ${event.action.contexts?.length ?? 1} answer${event.action.contexts?.length === 1 ? "" : "s"}`;
  if (event.action?.type === "transfer") return `transfers to ${event.action.agent}`;
  if (message?.tool_calls) return message.tool_calls.map((call) => `${call.name}(${short(call.arguments, 120)})`).join(", ");
  if (message) return message.role === "tool" ? `${message.tool_name ?? "tool"} → ${message.text}` : message.text;
  if (event.delta) return event.delta.text;
  if (event.action) return event.action.type;
  return event.custom_output === undefined ? "" : pretty(event.custom_output);
}
