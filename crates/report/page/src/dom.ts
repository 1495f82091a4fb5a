// Making elements. Text is only ever inserted as text nodes: nothing in the page parses HTML.

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Props = Record<string, unknown>;

/** An element: `on…` functions become listeners, `true`/`false` toggle an attribute, the rest are attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props?: Props | null, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (props) apply(element, props);
  append(element, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag: string, props?: Props | null, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  if (props) apply(element, props);
  append(element, children);
  return element;
}

function apply(element: Element, props: Props): void {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on") && typeof value === "function") {
      element.addEventListener(key.slice(2), value as EventListener);
    } else if (key === "vars") {
      // Style attributes would be refused by the content security policy; the object model is not.
      for (const [name, v] of Object.entries(value as Record<string, string>)) {
        (element as HTMLElement).style.setProperty(name, v);
      }
    } else {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
}

export function append(parent: Node, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.textContent = "";
  append(parent, children);
}

/** A name from the profile: set apart from the text around it, whatever direction it is written in. */
export function code(text: string, props?: Props): HTMLElement {
  return h("bdi", { ...props, class: `name ${String(props?.["class"] ?? "")}`.trim() }, text);
}

let unique = 0;

/** A document-wide id, to tie a label to what it labels. */
export function uid(prefix: string): string {
  return `${prefix}-${++unique}`;
}

/** Buttons of which one is pressed. */
export function segmented<T extends string>(
  label: string,
  options: readonly { value: T; label: string; title?: string }[],
  value: T,
  pick: (value: T) => void,
): HTMLElement & { set(value: T): void } {
  const buttons = options.map((o) =>
    h("button", { type: "button", title: o.title, onclick: () => pick(o.value), "data-value": o.value }, o.label),
  );
  const group = h("div", { class: "segmented", role: "group", "aria-label": label }, buttons);
  const set = (v: T): void => {
    for (const b of buttons) b.setAttribute("aria-pressed", String(b.dataset["value"] === v));
  };
  set(value);
  return Object.assign(group, { set });
}

/** A labelled choice. */
export function choice(
  label: string,
  options: readonly { value: string; label: string }[],
  value: string,
  pick: (value: string) => void,
  props?: Props,
): HTMLSelectElement {
  const select = h("select", { "aria-label": label, ...props, onchange: () => pick(select.value) });
  for (const o of options) select.appendChild(h("option", { value: o.value }, o.label));
  select.value = value;
  return select;
}
