// Making elements. Whatever is shown becomes a text node: nothing of a run, a user or a model is ever HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name === "class" ? "class" : name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// h("button", {class: "main", onclick: send}, "Send")
export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// Only what has changed is written: what a user has focused or marked stays.
export function text(element, value) {
  const wanted = String(value ?? "");
  if (element.textContent !== wanted) element.textContent = wanted;
  return element;
}

// The children of `parent` are those of `items`, each made once and updated from then on.
export function keyed(parent, items, key, make, update) {
  const known = (parent.known ??= new Map());
  const wanted = new Set(items.map(key));
  for (const [name, element] of known) {
    if (!wanted.has(name)) {
      element.remove();
      known.delete(name);
    }
  }
  let before = null;
  for (const item of items) {
    const name = key(item);
    let element = known.get(name);
    if (element === undefined) {
      element = make(item);
      known.set(name, element);
    }
    const after = before === null ? parent.firstElementChild : before.nextElementSibling;
    if (after !== element) parent.insertBefore(element, after);
    update?.(element, item);
    before = element;
  }
}

// A question before something that cannot be undone.
export function sure(question, label) {
  return new Promise((resolve) => {
    const answer = (value) => () => { dialog.close(); resolve(value); };
    const dialog = h("dialog", { class: "sure", oncancel: () => resolve(false) },
      h("p", {}, question),
      h("div", { class: "row end" }, h("button", { type: "button", onclick: answer(false) }, "No"), h("button", { type: "button", class: "danger", onclick: answer(true) }, label)));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  });
}

let hiding = 0;
export function notice(message, isProblem = false) {
  const place = document.getElementById("notice");
  text(place, message);
  place.className = isProblem ? "problem" : "";
  place.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { place.hidden = true; }, isProblem ? 12000 : 4000);
}

// Do something that may fail, and say so where it does. The button cannot be pressed twice meanwhile.
export async function attempt(button, work) {
  if (button?.disabled) return undefined;
  if (button) button.disabled = true;
  try {
    return await work();
  } catch (error) {
    notice(error.message, true);
    return undefined;
  } finally {
    if (button) button.disabled = false;
  }
}
