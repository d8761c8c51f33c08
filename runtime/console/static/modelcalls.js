// What each model call of a run was asked: instruction, messages, tools, settings, tokens and latency.

import { attempt, h, keyed, replace, text } from "./dom.js";
import { clock, count, empty, json, pretty, span } from "./forms.js";
import { get } from "./net.js";

const block = (title, ...content) => h("section", {}, h("h3", {}, title), content);
const words = (value) => h("pre", { class: "json" }, value);

function said(message) {
  const calls = (message.tool_calls ?? []).map((call) => words(`${call.name}(${pretty(call.arguments ?? "")})`));
  return h("div", { class: "said" }, h("b", {}, message.tool_name ? `${message.role} ${message.tool_name}` : message.role), message.text ? words(message.text) : null, calls);
}

export class ModelCalls {
  constructor(id) {
    this.id = id;
    this.note = empty("…");
    this.list = h("div", {});
    this.element = h("div", { class: "modelcalls" }, this.note, this.list);
  }

  async look() {
    const { how, calls } = await get("run/calls", { id: this.id });
    text(this.note, how ?? "The console's process has made no model calls for this run since content capture was enabled.");
    this.note.hidden = calls.length > 0;
    keyed(this.list, calls, (call) => `${call.number} ${call.seconds === null}`, (call) => this.make(call));
  }

  make(call) {
    const body = h("div", {});
    const used = call.input_tokens === null ? "" : `, ${count(call.input_tokens)} + ${count(call.output_tokens)} tokens`;
    const facts = `${clock(call.at)}, ${call.seconds === null ? "no reply" : span(call.seconds)}${used}, ${count(call.messages)} messages, ${count(call.tools)} tools`;
    const element = h("details", { class: "call" }, h("summary", { data: { row: "" } }, h("b", {}, `#${call.number} ${call.agent}`), ` ${call.model} `, h("span", { class: "state" }, facts)), body);
    element.addEventListener("toggle", () => {
      if (element.open && !body.children.length) attempt(null, async () => this.fill(body, await get("run/call", { id: this.id, number: call.number })));
    });
    return element;
  }

  fill(body, call) {
    replace(body,
      block("Instruction", call.instruction ? words(call.instruction) : empty("None.")),
      block("Messages", call.earlier ? h("p", { class: "quiet" }, `${count(call.earlier)} earlier messages are not shown.`) : null, call.asked.map(said)),
      block("Tools", call.tool_specs.length ? call.tool_specs.map((tool) => h("details", {}, h("summary", {}, h("b", {}, tool.name), ` ${tool.description}`), json(tool.parameters))) : empty("None.")),
      block("Settings", Object.keys(call.settings).length ? json(call.settings) : empty("The provider's defaults.")),
      call.output_schema ? block("Output schema", json(call.output_schema)) : null,
      block("Reply", call.reply ? said(call.reply) : empty("No reply: the call is still running, or it failed.")));
  }
}
