// The agents of a run. Who is at work is lit: those on the path of the latest event, while the run is running; in a Parallel, in each lane that spoke of late.

import { h, text } from "./dom.js";

const LATE = 30;  // seconds

export class Tree {
  constructor(agents, root) {
    this.nodes = new Map();
    this.top = h("ul", { class: "tree" });
    this.element = h("div", {}, this.top);
    this.path = [];
    this.lanes = new Map();  // the first agent of a lane of a Parallel -> the path of its latest event, and when that was
    this.parallel = new Map();  // such an agent -> its Parallel
    this.isRunning = false;
    const byId = new Map();
    if (agents.agent === root) {
      for (const shape of agents.shapes) {
        const node = this.node(shape.name, byId.get(shape.above));
        byId.set(shape.id, node);
        node.element.title = shape.description;
        const above = byId.get(shape.above);
        if (above && above.type.textContent === "Parallel") this.parallel.set(shape.name, above.name);
        text(node.type, shape.type);
        node.tools.append(...shape.tools.map((tool) => h("span", { class: tool.needs_approval ? "chip asks" : "chip", title: tool.needs_approval ? "needs approval" : "" }, tool.name)),
          ...shape.guardrails.map((name) => h("span", { class: "chip guards" }, name)));
      }
    }
  }

  node(name, above) {
    const known = this.nodes.get(name);
    if (known) return known;
    const node = { name, parent: above, count: 0, below: null, type: h("small", {}), number: h("small", { class: "count" }), tools: h("span", { class: "toolrow" }) };
    node.label = h("div", { class: "node" }, h("b", {}, name), node.type, node.number, node.tools);
    node.element = h("li", {}, node.label);
    if (above) {
      if (!above.below) above.element.append(above.below = h("ul", {}));
      above.below.append(node.element);
    } else this.top.append(node.element);
    this.nodes.set(name, node);
    return node;
  }

  push(events) {
    for (const event of events) {
      let above;
      for (const name of event.run_path) above = this.node(name, above);
      if (above && event.kind !== "delta") above.count++;
      this.note(event);
    }
    this.path = events.at(-1)?.run_path ?? this.path;
    this.later();
  }

  note(event) {
    const lane = event.run_path.find((name) => this.parallel.has(name));
    for (const other of this.lanes.keys()) if (this.parallel.get(other) !== this.parallel.get(lane)) this.lanes.delete(other);  // it is over
    if (lane) this.lanes.set(lane, { path: event.run_path, at: event.timestamp });
  }

  running(isRunning) {
    this.isRunning = isRunning;
    this.later();
  }

  later() {
    this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.render(); });
  }

  render() {
    const newest = Math.max(0, ...[...this.lanes.values()].map((lane) => lane.at));
    const paths = this.isRunning ? [this.path, ...[...this.lanes.values()].filter((lane) => lane.at > newest - LATE).map((lane) => lane.path)] : [];
    const last = new Set(paths.map((path) => path.at(-1)));
    const above = new Set();
    for (const name of last) for (let node = this.nodes.get(name)?.parent; node; node = node.parent) above.add(node.name);
    for (const node of this.nodes.values()) {
      node.label.classList.toggle("lit", last.has(node.name));
      node.label.classList.toggle("above", above.has(node.name) && !last.has(node.name));
      node.label.classList.toggle("seen", node.count > 0);
      text(node.number, node.count ? `${node.count.toLocaleString("en")}` : "");
    }
  }
}
