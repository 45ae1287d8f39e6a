// Fields of the form: sliders, choices, and the parameters of a discipline.
import { bounds, type Parameter } from "./catalog.js";
import { h, say } from "./dom.js";

/** Three significant digits: what a slider gives. */
const rounded = (value: number) => Number(value.toPrecision(3));

let fields = 0;

/** A slider that rests so many milliseconds has its value, even if it is held. */
const REST = 300;

/** A slider; `log` ones multiply. `said` is the value with its unit. It tells once for each gesture. */
export function slider(
  label: string,
  [low, high]: readonly [number, number],
  options: { value: number; log?: boolean; whole?: boolean; said: (value: number) => string },
  onChange: (value: number) => void,
): HTMLElement & { show: (value: number) => void } {
  const { log = false, whole = false, said } = options;
  // A logarithmic slider that reaches 0 begins there and goes on at 1.
  const place = (value: number) =>
    log
      ? Math.log(Math.max(value, low || 0.5) / (low || 0.5)) / Math.log(high / (low || 0.5))
      : (value - low) / (high - low);
  const value = (at: number) => {
    const exact = log ? (low || 0.5) * (high / (low || 0.5)) ** at : low + at * (high - low);
    return whole ? Math.round(exact - (log && low === 0 ? 0.4 : 0)) : rounded(exact);
  };
  const output = h("output", {}, said(options.value));
  const input = h("input", { type: "range", min: 0, max: 1, step: "any", "aria-label": label });
  const show = (now: number) => {
    input.value = String(place(now));
    last = now;
    input.setAttribute("aria-valuetext", said(now));
    say(output, said(now));
  };
  let resting: ReturnType<typeof setTimeout> | undefined;
  let last = options.value;
  const tell = () => {
    clearTimeout(resting);
    const now = value(Number(input.value));
    if (now === last) return;
    last = now;
    onChange(now);
  };
  input.addEventListener("input", () => {
    const now = value(Number(input.value));
    input.setAttribute("aria-valuetext", said(now));
    say(output, said(now));
    clearTimeout(resting);
    resting = setTimeout(tell, REST);
  });
  input.addEventListener("change", tell);
  // "any" has no step for the keyboard: a hundredth of the way.
  input.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (way === undefined) return;
    event.preventDefault();
    const now = Number(input.value);
    let next = now;
    for (let steps = 0; steps < 100 && value(next) === value(now); steps += 1)
      next = Math.min(1, Math.max(0, next + way / 100));
    input.value = String(next);
    input.dispatchEvent(new Event("input"));
  });
  show(options.value);
  return Object.assign(h("label", { class: "field" }, h("span", {}, label, output), input), { show });
}

export function choice(
  label: string,
  options: readonly (readonly [value: string, said: string, reasonAgainst?: string])[],
  value: string,
  onChange: (value: string) => void,
): HTMLElement {
  const select = h("select", { change: () => onChange(select.value) });
  for (const [name, said, against = ""] of options) {
    const text = against === "" ? said : `${said} (${against})`;
    select.append(h("option", { value: name, selected: name === value, disabled: against !== "" }, text));
  }
  return h("label", { class: "field" }, h("span", {}, label), select);
}

/** A whole number from 0. */
export function whole(label: string, value: number, onChange: (value: number) => void): HTMLElement {
  const input = h("input", {
    type: "number",
    min: 0,
    step: 1,
    value,
    change: () => {
      if (input.validity.valid && input.value !== "") onChange(Number(input.value));
    },
  });
  return h("label", { class: "field" }, h("span", {}, label), input);
}

export function check(label: string, value: boolean, onChange: (value: boolean) => void): HTMLElement {
  const input = h("input", { type: "checkbox", change: () => onChange(input.checked) });
  input.checked = value;
  return h("label", { class: "check" }, input, label);
}

/** What may stand in a parameter, as its explanation says it. */
function range(parameter: Parameter): string {
  const fallback = parameter.default;
  const simple = typeof fallback !== "object" && fallback !== undefined;
  const otherwise = simple ? `; default ${fallback}` : "";
  return `${parameter.type.replace(/^text such as "(.*)"$/, "for example $1")}${otherwise}`;
}

/** A parameter of a discipline: label, value with its unit, range, explanation. */
export function parameterField(
  parameter: Parameter,
  value: string,
  onChange: (value: string) => void,
): HTMLElement | null {
  const { name, description, type, words = [] } = parameter;
  if (type === "list" || type === "table") return null;
  fields += 1;
  const about = `parameter-${fields}`;
  const label = name.replaceAll("_", " ");
  const explained = h("p", { id: about }, `${description} (${range(parameter)})`);
  if (words.length > 0) {
    const select = h("select", { "aria-describedby": about, change: () => onChange(select.value) });
    for (const word of words)
      select.append(h("option", { value: word.name, selected: word.name === value }, word.name));
    return h("div", { class: "field" }, h("label", {}, label, select), explained);
  }
  if (type === "true or false")
    return h(
      "div",
      {},
      check(label, value === "true", (on) => onChange(String(on))),
      explained,
    );
  const limits = bounds(parameter);
  const attributes: Record<string, string | number> = limits
    ? {
        type: "number",
        step: limits.whole ? 1 : "any",
        ...(limits.min === undefined ? {} : { min: limits.min }),
        ...(limits.max === undefined ? {} : { max: limits.max }),
      }
    : { type: "text", spellcheck: "false" };
  const input = h("input", {
    ...attributes,
    value,
    "aria-describedby": about,
    change: () => onChange(input.value.trim()),
  });
  return h("div", { class: "field" }, h("label", {}, label, input), explained);
}
