// The sessions of the latest runs.

import { attempt, h, replace } from "./dom.js";
import { get } from "./net.js";
import { ago, count, empty, sessionLink, status } from "./forms.js";

export function open(root) {
  const field = h("input", { placeholder: "id of a session, known or new", "aria-label": "Id of a session" });
  const list = h("ul", { class: "list big" });
  const go = (event) => {
    event.preventDefault();
    if (field.value.trim()) location.hash = `#/session/${encodeURIComponent(field.value.trim())}`;
  };
  replace(root, h("h1", {}, "Sessions"), h("form", { class: "row", onsubmit: go }, field, h("button", {}, "Open")), list);
  attempt(null, async () => {
    const { sessions, searched } = await get("sessions");
    replace(list, sessions.map((one) => h("li", { data: { row: "" } }, sessionLink(one.id), h("span", { class: "agent" }, one.agent), h("span", { class: "quiet grow" }, `${count(one.runs)} of the latest runs`), status(one.status), h("time", { class: "quiet" }, ago(one.used)))));
    list.after(sessions.length ? h("p", { class: "quiet" }, `Those of the latest ${count(searched)} runs. Others are opened by their id.`) : empty("No run of late was in a session."));
  });
  return {};
}
