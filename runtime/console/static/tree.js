// The agents of a run. Who is at work is lit: those on the path of the latest event, while the run is running.

import { h, text } from "./dom.js";

export class Tree {
  constructor(agents, root) {
    this.nodes = new Map();
    this.top = h("ul", { class: "tree" });
    this.element = h("div", {}, this.top);
    this.path = [];
    this.isRunning = false;
    const byId = new Map();
    if (agents.agent === root) {
      for (const shape of agents.shapes) {
        const node = this.node(shape.name, byId.get(shape.above));
        byId.set(shape.id, node);
        node.element.title = shape.description;
        text(node.type, shape.type);
        node.tools.append(...shape.tools.map((tool) => h("span", { class: tool.needs_approval ? "chip asks" : "chip", title: tool.needs_approval ? "needs approval" : "" }, tool.name)),
          ...shape.guardrails.map((name) => h("span", { class: "chip guards" }, name)));
      }
    }
  }

  node(name, above) {
    const known = this.nodes.get(name);
    if (known) return known;
    const node = { name, count: 0, below: null, type: h("small", {}), number: h("small", { class: "count" }), tools: h("span", { class: "toolrow" }) };
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
    }
    this.path = events.at(-1)?.run_path ?? this.path;
    this.later();
  }

  running(isRunning) {
    this.isRunning = isRunning;
    this.later();
  }

  later() {
    this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.render(); });
  }

  render() {
    const last = this.path.at(-1);
    for (const node of this.nodes.values()) {
      const lit = this.isRunning && this.path.includes(node.name);
      node.label.classList.toggle("lit", lit && node.name === last);
      node.label.classList.toggle("above", lit && node.name !== last);
      node.label.classList.toggle("seen", node.count > 0);
      text(node.number, node.count ? `${node.count.toLocaleString("en")}` : "");
    }
  }
}
