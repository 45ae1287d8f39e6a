// Replaces the pictures of a report by live charts. It is bundled with Vega, so that nothing is fetched.
// What is shown is one state; every control changes it, and every chart follows it.

const page = document.documentElement;
const data = JSON.parse(document.getElementById("charts").textContent);
const element = (id) => document.getElementById(id);
const order = new Map(data.names.map((name, number) => [name, number]));
const state = { hidden: new Set(), traffic: data.traffic ?? "all", limit: data.limit, direction: data.traces?.rows[0]?.direction ?? "", variable: "" };
const charts = [];

/** A new element with attributes and children; text is never taken as markup. */
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A line in the colour and pattern of a configuration. */
function swatch(name) {
  const box = element("controls").querySelector(`input[value=${CSS.escape(name)}]`);
  return box.parentElement.querySelector(".swatch").cloneNode(true);
}

function plain(value, unit) {
  const size = Math.abs(value);
  const text = size >= 1e5 || (size > 0 && size < 1e-3) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  return unit ? `${text} ${unit}` : text;
}

/** What a curve says at a place: the point that holds there, given how the curve steps. */
function pointAt(times, x, steps) {
  let low = 0;
  let high = times.length;
  while (low < high) { // the first time at or after x
    const middle = (low + high) >> 1;
    if (times[middle] < x) low = middle + 1; else high = middle;
  }
  if (steps === "before") return low;
  if (low < times.length && times[low] === x) return low;
  if (steps === "after") return low - 1;
  return low > 0 && (low === times.length || x - times[low - 1] < times[low] - x) ? low - 1 : low;
}

/** A chart, its cursor and what it reads out. */
class Chart {
  constructor(place, kind, rows, signals) {
    Object.assign(this, { place, kind, rows, signals, view: null, at: null });
    this.stage = make("div", { class: "stage", "aria-hidden": "true" });
    const words = { tabindex: "0", role: "slider", "aria-valuenow": "0", "aria-label": `${place.dataset.label}: place of the cursor` };
    this.plot = make("div", { class: "plot", ...words }, this.stage);
    this.cursor = make("div", { class: "cursor" });
    this.cursor.hidden = true;
    this.ready = this.draw();
    charts.push(this);
  }

  async draw() {
    const now = this.signals();
    const params = this.kind.spec.params.map((param) => ({ ...param, value: now[param.name] ?? param.value }));
    const spec = { ...this.kind.spec, params, datasets: { rows: this.rows } };
    this.place.replaceChildren(this.plot, this.cursor, this.saveButtons());
    const { view } = await vegaEmbed(this.stage, spec, { actions: false, renderer: "svg", tooltip: false });
    this.view = view;
    this.listen();
    this.follow(); // what was chosen meanwhile
  }

  /** The curves that are shown. */
  get curves() {
    const wanted = this.signals();
    const fits = (row) => ["class", "direction", "variable"].every((key) => !(key in row) || row[key] === (wanted[key] ?? wanted.traffic));
    return this.rows.filter((row) => fits(row) && !state.hidden.has(row.run));
  }

  follow() {
    if (!this.view) return;
    for (const [name, value] of Object.entries(this.signals())) this.view.signal(name, value);
    this.view.run();
    this.leave();
  }

  listen() {
    for (const kind of ["pointermove", "pointerdown"]) this.plot.addEventListener(kind, (event) => this.point(event));
    for (const kind of ["pointerleave", "blur"]) this.plot.addEventListener(kind, () => this.leave());
    this.plot.addEventListener("keydown", (event) => this.key(event));
  }

  /** Where the plot lies in its place, in pixels, and where the drawing lies on the screen. */
  get frame() {
    const svg = this.stage.querySelector("svg");
    const box = svg.getBoundingClientRect();
    const ratio = box.width / svg.viewBox.baseVal.width;
    const padding = this.view.padding();
    const [x, y] = this.view.origin();
    const [left, top] = [(x + padding.left) * ratio, (y + padding.top) * ratio];
    const [width, height] = ["width", "height"].map((name) => this.view.signal(name) * ratio);
    return { left, top, width, height, box };
  }

  point(event) {
    const { left, width, box } = this.frame;
    const share = (event.clientX - box.left - left) / width;
    if (share < 0 || share > 1) this.leave();
    else this.read(share, event.clientX, event.clientY);
  }

  key(event) {
    const step = event.shiftKey ? 0.1 : 0.01;
    const from = this.at ?? 0;
    const to = { ArrowLeft: from - step, ArrowDown: from - step, ArrowRight: from + step, ArrowUp: from + step, Home: 0, End: 1 }[event.key];
    if (event.key === "Escape") this.leave();
    if (to === undefined) return;
    event.preventDefault();
    const share = Math.min(1, Math.max(0, to));
    const { left, width, box } = this.frame;
    this.read(share, box.left + left + share * width, box.top + box.height / 3);
  }

  /** Shows the cursor at a share of the width, and the values of all curves there. */
  read(share, clientX, clientY) {
    const { left, width, top, height } = this.frame;
    const x = this.view.scale("x").invert(share * this.view.signal("width"));
    const values = this.curves
      .map((row) => ({ row, number: pointAt(row.time, x, this.kind.steps) }))
      .filter(({ row, number }) => number >= 0 && number < row.time.length)
      .map(({ row, number }) => ({ run: row.run, value: (row.share ?? row.mean)[number], low: row.min?.[number], high: row.max?.[number] }))
      .sort((one, other) => other.value - one.value);
    const text = ({ value, low, high }) => low === undefined ? plain(value, this.kind.unit) : `${plain(value)} (${plain(low)} to ${plain(high)})`;
    this.at = share;
    this.cursor.hidden = false;
    const inside = { left: left + share * width, top, height };
    for (const [side, length] of Object.entries(inside)) this.cursor.style[side] = `${length}px`;
    const head = `${plain(x)} s`;
    const lines = values.slice(0, data.lines).map((one) => make("div", {}, swatch(one.run), make("span", {}, one.run), make("span", {}, text(one))));
    if (values.length > lines.length) lines.push(make("div", {}, `and ${values.length - lines.length} more`));
    const said = values.slice(0, data.lines).map((one) => `${one.run} ${text(one)}`).join(", ");
    this.plot.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    this.plot.setAttribute("aria-valuetext", `${head}: ${said || "nothing is shown"}`);
    showTip(clientX, clientY, make("b", {}, head), ...lines);
  }

  leave() {
    if (this.cursor.hidden) return; // the tooltip may be another chart's
    this.cursor.hidden = true;
    element("tip").hidden = true;
  }

  saveButtons() {
    const svg = make("button", { type: "button", "aria-label": `Save as SVG: ${this.place.dataset.label}` }, "SVG");
    const png = make("button", { type: "button", "aria-label": `Save as PNG: ${this.place.dataset.label}` }, "PNG");
    svg.addEventListener("click", async () => save(`${this.place.id}.svg`, new Blob([await this.picture()], { type: "image/svg+xml" })));
    png.addEventListener("click", async () => save(`${this.place.id}.png`, await drawn(await this.picture())));
    return make("div", { class: "save" }, svg, png);
  }

  /** The chart as it is shown, on white, with its legend: a figure for a paper. */
  async picture() {
    const doc = new DOMParser().parseFromString(await this.view.toSVG(), "image/svg+xml");
    const svg = doc.documentElement;
    const [, , width, height] = svg.getAttribute("viewBox").split(/[ ,]+/).map(Number);
    const names = [...new Set(this.curves.map((row) => row.run))];
    const tall = height + 18 * names.length + 8;
    const add = (tag, attributes, text = "") => {
      const made = doc.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.textContent = text;
      return made;
    };
    names.forEach((name, number) => {
      const y = height + 18 * number + 10;
      const line = swatch(name).querySelector("line");
      svg.append(
        add("line", { x1: 10, x2: 36, y1: y, y2: y, "stroke-width": 3, stroke: line.getAttribute("stroke"), "stroke-dasharray": line.getAttribute("stroke-dasharray") ?? "" }),
        add("text", { x: 44, y: y + 4, "font-size": 12, "font-family": "sans-serif", fill: "var(--text)" }, name),
      );
    });
    svg.prepend(add("rect", { width, height: tall, fill: "#fff" }));
    svg.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", tall);
    const text = new XMLSerializer().serializeToString(doc);
    return text.replace(/var\((--[\w-]+)\)/g, (whole, name) => data.light[name] ?? whole);
  }
}

function save(name, blob) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** An SVG as PNG, twice its size. */
async function drawn(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = make("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
}

function showTip(x, y, ...content) {
  const tip = element("tip");
  tip.replaceChildren(...content);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const room = { width: page.clientWidth, height: page.clientHeight };
  const left = x + 16 + width > room.width ? x - width - 16 : x + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, room.height - height - 4))}px`;
}

/** The queue of a configuration and one inner variable of its law; those that are hidden at first are drawn when they come into view. */
class Trace {
  constructor(name) {
    this.name = name;
    this.rows = data.traces.rows.filter((row) => row.run === name);
    this.queue = make("div", { class: "chart", id: `trace-${order.get(name)}`, "data-label": `Queue of ${name} over time` });
    this.inner = make("div", { class: "chart", id: `inner-${order.get(name)}`, "data-label": `Inner variable of ${name} over time` });
    this.head = make("h3", {});
    this.place = make("div", { class: "trace" }, this.head, this.queue, this.inner);
    this.seen = false;
  }

  /** The inner variable that is shown, or nothing. */
  get variable() {
    const own = [...new Set(this.rows.filter((row) => row.direction === state.direction).map((row) => row.variable))];
    const wanted = (name) => name === state.variable;
    const probability = (name) => name === data.traces.probability[this.name];
    return own.find(state.variable ? wanted : probability) ?? "";
  }

  /** Draws it now, if it is to be shown. */
  async show() {
    this.seen = true;
    this.follow();
    await Promise.all(Object.values(this.charts ?? {}).map((chart) => chart.ready));
  }

  follow() {
    this.place.hidden = state.hidden.has(this.name);
    this.inner.hidden = !this.variable;
    this.head.replaceChildren(swatch(this.name), this.variable ? `${this.name}: packets, ${this.variable}` : this.name);
    if (this.place.hidden || !this.seen) return;
    this.charts ??= {};
    this.charts.queue ??= new Chart(this.queue, data.traces.queue, this.rows, () => ({ direction: state.direction, variable: "packets" }));
    if (this.variable) this.charts.inner ??= new Chart(this.inner, data.traces.inner, this.rows, () => ({ direction: state.direction, variable: this.variable }));
  }
}

const traces = [];
function makeTraces() {
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      traces.find((one) => one.place === target).show();
    }
  }, { rootMargin: "400px" });
  const names = new Set(data.traces.rows.map((row) => row.run));
  traces.push(...data.names.filter((name) => names.has(name)).map((name) => new Trace(name)));
  element("traces").replaceChildren(...traces.map((trace) => trace.place));
  for (const trace of traces) watch.observe(trace.place);
}

function follow() {
  const shown = data.names.length - state.hidden.size;
  element("shown").textContent = `${shown} of ${data.names.length} shown`;
  for (const trace of traces) trace.follow();
  for (const chart of charts) chart.follow();
}

function listen() {
  const boxes = [...document.querySelectorAll("#controls input[name=run]")];
  const read = () => {
    state.hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    follow();
  };
  for (const box of boxes) box.addEventListener("change", read);
  for (const button of document.querySelectorAll("[data-choose]")) {
    button.addEventListener("click", () => {
      for (const box of boxes) box.checked = button.dataset.choose === "all";
      read();
    });
  }
  for (const [id, change] of Object.entries({ traffic: String, limit: Number, direction: String, variable: String })) {
    element(id)?.addEventListener("change", (event) => {
      state[id] = change(event.target.value);
      follow();
    });
  }
  read();
}

/** Light, dark, or as the system has it; remembered where the browser allows it. */
function themes() {
  const words = { auto: ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] };
  const names = Object.keys(words);
  const key = "aqmlab-theme";
  let chosen = "auto";
  try { chosen = names.includes(localStorage.getItem(key)) ? localStorage.getItem(key) : "auto"; } catch { /* no storage here */ }
  const apply = () => {
    const [sign, text] = words[chosen];
    if (chosen === "auto") delete page.dataset.theme; else page.dataset.theme = chosen;
    element("theme").textContent = sign;
    element("theme").setAttribute("aria-label", `Colours: ${text}`);
    element("theme").title = `Colours: ${text}`;
  };
  element("theme").addEventListener("click", () => {
    chosen = names[(names.indexOf(chosen) + 1) % names.length];
    try { localStorage.setItem(key, chosen); } catch { /* no storage here */ }
    apply();
  });
  apply();
}

page.classList.add("scripted");
themes();
if (data.traces) makeTraces();
if (data.cdf) {
  const signals = () => ({ hidden: [...state.hidden], traffic: state.traffic });
  new Chart(element("chart-cdf"), data.cdf, data.cdf.rows, () => ({ ...signals(), limit: state.limit }));
  new Chart(element("chart-ccdf"), data.ccdf, data.ccdf.rows, signals);
}
if (element("controls")) listen();
await Promise.all(charts.map((chart) => chart.ready));
page.dataset.ready = "charts";
// What is shown at first is drawn even if nobody scrolls there: somebody may print the page.
for (const trace of traces.filter((one) => !state.hidden.has(one.name))) {
  await new Promise((next) => { setTimeout(next); });
  await trace.show();
}
page.dataset.ready = "all";
