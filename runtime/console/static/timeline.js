// Who ran when, beside whom: drawn from a run's events.

import { h, replace, s } from "./dom.js";
import { clock, empty, line, short, span } from "./forms.js";

const LANE = 30;
const LEFT = 150;
const NARROW = 520;
const MOST = 4000;
const BANDS = { waits: "waited for an answer", lost: "process lost", rests: "was paused" };

// What would be drawn upon one another is drawn once.
function merged(parts, x) {
  const last = new Map();
  const found = [];
  for (const part of parts) {
    const key = `${part.row} ${part.kind}`;
    const before = last.get(key);
    if (before && x(part.from) - x(before.to) < 1 && x(part.to) - x(before.to) < 2) {
      before.to = Math.max(before.to, part.to);
      before.number++;
      before.words = `${before.number} parts`;
    } else {
      const shown = { ...part, number: 1 };
      last.set(key, shown);
      found.push(shown);
    }
  }
  return found;
}

// The stretches of time that the events tell of: a model's reply begins with what came before it in its agent, a tool's result with its call.
export class Timeline {
  constructor(started) {
    this.started = started;
    this.lanes = new Map();
    this.parts = [];
    this.last = new Map();
    this.calls = new Map();
    this.from = started;
    this.to = started;
    this.waits = null;
    this.element = h("div", { class: "timeline scroll", tabindex: "0" });
  }

  push(events) {
    for (const event of events) {
      if (event.kind === "delta" || event.kind === "retry") continue;
      this.take(event);
    }
    if (this.parts.length > 2 * MOST) this.parts.splice(0, this.parts.length - MOST);
  }

  take(event) {
    const at = event.timestamp;
    if (!this.lanes.has(event.agent)) this.lanes.set(event.agent, this.lanes.size);
    if (this.waits !== null) {
      this.parts.push({ kind: "waits", agent: null, from: this.waits, to: at, words: "waited for an answer" });
      this.last.clear();
      this.to = at;
      this.waits = null;
    }
    const before = this.last.get(event.agent) ?? this.to;
    const words = short(line(event), 200);
    if (event.message?.role === "tool") {
      const called = this.calls.get(event.message.tool_call_id) ?? before;
      // A call that was made after an answer began when that came, which no event says.
      const waited = this.parts.findLast((part) => part.kind === "waits");
      this.parts.push({ kind: "tool", agent: event.agent, from: waited && waited.from >= called ? waited.to : called, to: at, words });
      this.calls.delete(event.message.tool_call_id);
    } else if (event.error) this.parts.push({ kind: "error", agent: event.agent, from: at, to: at, words });
    else if (event.action?.type === "interrupted") {
      this.parts.push({ kind: "asks", agent: event.agent, from: at, to: at, words });
      this.waits = at;
    } else this.parts.push({ kind: "model", agent: event.agent, from: before, to: at, words });
    for (const call of event.message?.tool_calls ?? []) this.calls.set(call.id, at);
    this.last.set(event.agent, at);
    this.to = Math.max(this.to, at);
  }

  // What has happened so far, as far as this page has seen it.
  draw(now) {
    if (!this.parts.length) {
      replace(this.element, empty("Nothing has happened yet."));
      return;
    }
    const parts = this.parts.slice(-MOST);
    const from = Math.min(this.from, ...parts.map((part) => part.from));
    this.put([...this.lanes.keys()].map((name) => ({ name, depth: 0 })), parts.map((part) => ({ ...part, row: part.agent === null ? null : this.lanes.get(part.agent) })), from, Math.max(this.to, now ?? 0), []);
  }

  // What the store knows of it, which is more: what was lost between two processes, and when an answer came.
  drawKept(found) {
    const parts = [
      ...found.bands.map((band) => ({ kind: band.kind, row: null, from: band.from, to: band.to, words: `${BANDS[band.kind]} ${band.text}` })),
      ...found.spans.map((one) => ({ kind: "span", row: one.row, from: one.from, to: one.to, words: "" })),
      ...found.parts.map((part) => ({ kind: part.kind, row: part.row, from: part.from, to: part.to, words: `${part.name} ${part.note}` })),
    ];
    this.put(found.rows, parts, found.start, found.end, found.summary);
  }

  put(rows, parts, from, to, summary) {
    const until = Math.max(to, from + 0.001);
    // On a phone, names are above their lanes: so the whole picture fits.
    const isNarrow = this.element.clientWidth < NARROW;
    const wide = isNarrow ? Math.max(240, this.element.clientWidth) : this.element.clientWidth - 24;
    const first = isNarrow ? 4 : LEFT, above = isNarrow ? 16 : 0, lane = LANE + above;
    const x = (moment) => first + (moment - from) / (until - from) * (wide - first - 12);
    const height = 34 + rows.length * lane;
    const picture = s("svg", { width: wide, height, viewBox: `0 0 ${wide} ${height}`, role: "img", "aria-label": "Timeline" });
    for (let mark = 0; mark <= 4; mark += isNarrow ? 2 : 1) {
      const at = from + mark / 4 * (until - from);
      picture.append(s("line", { x1: x(at), x2: x(at), y1: 22, y2: height, class: "grid" }), s("text", { x: x(at), y: 14, class: "mark", "text-anchor": mark === 4 ? "end" : mark ? "middle" : "start" }, mark ? `+${span(at - from)}` : clock(at)));
    }
    rows.forEach((row, number) => picture.append(s("text", { x: 4 + 10 * Math.min(row.depth, 5), y: 28 + number * lane + (isNarrow ? 11 : 15), class: "lane" }, s("title", {}, row.name), short(row.name, (isNarrow ? 36 : 19) - row.depth))));
    let free = first;  // where the last band ends: narrow ones are drawn wider than they are, and must not cover the next one
    for (const part of merged(parts, x)) {
      const isBand = part.row === null;
      const thin = part.kind === "span" ? 8 : 0;
      const left = isBand ? Math.max(free, x(part.from)) : x(part.from);
      const width = Math.max(isBand || thin ? 1 : 3, x(part.to) - left);
      if (isBand) free = left + width;
      picture.append(s("rect", { x: left, y: isBand ? 22 : 28 + part.row * lane + above + thin, width, height: isBand ? height - 22 : 20 - 2 * thin, rx: 3, class: `part ${part.kind}` },
        s("title", {}, `${rows[part.row]?.name ?? ""} ${BANDS[part.kind] ?? part.kind}, ${span(part.to - part.from)} ${part.words}`)));
    }
    const kinds = new Set(parts.map((part) => part.kind));
    const legend = h("div", { class: "row wrap legend" }, Object.entries({ model: "model", tool: "tool", own: "own work", span: "between calls", asks: "asks", ...BANDS, error: "failed" }).filter(([kind]) => kinds.has(kind)).map(([kind, words]) => h("span", {}, h("i", { class: `part ${kind}` }), words)));
    replace(this.element, summary.length ? h("p", { class: "quiet" }, summary.join(" · ")) : null, picture, legend);
  }
}
