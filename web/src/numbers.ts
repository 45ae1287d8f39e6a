// The table of numbers, and the gauges in the drawing of the network.
import { byId, h, say } from "./dom.js";
import { mbit, ms, percent } from "./format.js";
import type { Player } from "./player.js";
import { LINK } from "./protocol.js";
import { CLASSES, laneNames } from "./scenario.js";
import { CONTROL_NAMES, type State } from "./state.js";
import { Span } from "./stats.js";
import { LETTERS } from "./view.js";

/** The table is of so many seconds. */
const LATELY = 10;

type Row = [label: string, value: (span: Span) => string];

const ROWS: Row[] = [
  ["Queueing delay, mean", (span) => ms(span.meanDelay())],
  ["Queueing delay, 95 % are below", (span) => ms(span.delay(0.95))],
  ["Link in use", (span) => percent(span.use())],
  ["Packets dropped", (span) => percent(span.dropShare())],
  ["Packets marked", (span) => percent(span.markShare())],
  ["Web response, median so far", (span) => so(span, 0.5)],
  ["Web response, 95 % so far", (span) => so(span, 0.95)],
];

/** A response time since the run began. */
function so(span: Span, share: number): string {
  const value = new Span(span.data, 0, span.to).responseQuantile("web", share);
  return value === 0 ? "–" : ms(value);
}

export class Numbers {
  #cells: HTMLElement[][] = [];
  #rows: Row[] = [];
  #gauges: { fill: HTMLElement; now: HTMLElement }[] = [];

  build(state: State, classes: string[]): void {
    const names = laneNames(state).map((name, index) => `${LETTERS[index]} ${name}`);
    const ofClass = classes.map(
      (name): Row => [
        `${CLASSES[name as keyof typeof CLASSES] ?? name}: received`,
        (span) => mbit(span.throughput(name)),
      ],
    );
    this.#rows = [...ROWS, ...ofClass];
    this.#cells = this.#rows.map(() => names.map(() => h("td", {}, "–")));
    const head = h(
      "tr",
      {},
      h("th", { scope: "col" }, "Quantity"),
      ...names.map((name) => h("th", { scope: "col" }, name)),
    );
    const rows = this.#rows.map(([label], row) =>
      h("tr", {}, h("th", { scope: "row" }, label), ...(this.#cells[row] ?? [])),
    );
    byId("numbers").replaceChildren(h("thead", {}, head), h("tbody", {}, ...rows));
    this.#gauges = names.map((_, index) => ({
      fill: h("i", { class: "fill", style: `background: var(--lane-${index})` }),
      now: h("span", { class: "now" }, "empty"),
    }));
    byId("gauges").replaceChildren(
      ...names.map((name, index) => {
        const gauge = this.#gauges[index];
        return h(
          "div",
          { class: "gauge" },
          name,
          h("div", { class: "bar" }, gauge?.fill ?? null),
          gauge?.now ?? null,
        );
      }),
    );
    byId("lane-legend").replaceChildren(
      ...names.map((name, index) =>
        h("span", {}, h("i", { style: `background: var(--lane-${index})` }), name),
      ),
    );
  }

  /** What waits now: a full bar is the longest wait that any lane has seen lately. */
  drawGauges(player: Player): void {
    const spans = player.lanes.map(
      ({ data }) => new Span(data, Math.max(0, player.time - LATELY), player.time),
    );
    const most = Math.max(0.001, ...spans.flatMap((span) => span.delay(1) / 1000));
    for (const [index, { data }] of player.lanes.entries()) {
      const gauge = this.#gauges[index];
      const last = data.span(0, player.time)[1] - 1;
      if (gauge === undefined || last < 0) continue;
      const delay = data.links.at(last, LINK.delay);
      gauge.fill.style.width = `${Math.min(100, (100 * delay) / most)}%`;
      say(gauge.now, `${ms(1000 * delay)}, ${data.links.at(last, LINK.packets)} packets`);
    }
  }

  drawTable(player: Player): void {
    const spans = player.lanes.map(
      ({ data }) => new Span(data, Math.max(0, player.time - LATELY), player.time),
    );
    this.#rows.forEach(([, value], row) => {
      spans.forEach((span, lane) => {
        const cell = this.#cells[row]?.[lane];
        if (cell !== undefined) say(cell, span.isEmpty ? "–" : value(span));
      });
    });
  }
}

/** The link and its users in the drawing of the network. */
export function drawNetwork({ rate, transfers, web, call }: State): void {
  say(byId("rate-now"), mbit(rate));
  const senders = transfers.map(({ flows, control }) =>
    flows > 0 ? `${flows} × ${CONTROL_NAMES[control]}` : "",
  );
  const people = [web > 0 ? `${web} web users` : "", call ? "a phone call" : ""];
  say(byId("senders"), [...senders, ...people].filter(Boolean).join(", "));
}
