// The sessions of the latest runs.

import { attempt, h, replace } from "./dom.js";
import { get } from "./net.js";
import { ago, count, empty, sessionLink, status } from "./forms.js";

export function open(root) {
  const field = h("input", { placeholder: "session id, known or new", "aria-label": "Session id" });
  const list = h("ul", { class: "list big" });
  const go = (event) => {
    event.preventDefault();
    if (field.value.trim()) location.hash = `#/session/${encodeURIComponent(field.value.trim())}`;
  };
  replace(root, h("h1", {}, "Sessions"), h("form", { class: "row", onsubmit: go }, field, h("button", {}, "Open")), list);
  attempt(null, async () => {
    const { sessions, searched } = await get("sessions");
    replace(list, sessions.map((one) => h("li", { data: { row: "" } }, sessionLink(one.id), h("span", { class: "agent" }, one.agent), h("span", { class: "quiet grow" }, `${count(one.runs)} of the latest runs`), status(one.status), h("time", { class: "quiet" }, ago(one.used)))));
    list.after(sessions.length ? h("p", { class: "quiet" }, `Sessions of the latest ${count(searched)} runs. Open others by their id.`) : empty("None of the latest runs belongs to a session."));
  });
  return {};
}
