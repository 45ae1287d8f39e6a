// The table of numbers, and the gauges in the drawing of the network.
import { byId, h, say } from "./dom.js";
import { mbit, ms, percent } from "./format.js";
import { linkNamed } from "./links.js";
import type { Player } from "./player.js";
import { LINK } from "./protocol.js";
import { CLASSES, laneNames } from "./scenario.js";
import { CONTROL_NAMES, isLimitedUp, type State } from "./state.js";
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

/** What the users of a call and of a video get. */
const QUALITIES: Record<string, Row[]> = {
  call: [
    [
      "Call: opinion score, 1 to 4.5",
      (span) => said(lately(span, 14).opinion("call"), (score) => score.toFixed(1)),
    ],
  ],
  video: [
    ["Video: bit rate", (span) => said(span.videoRate("video"), mbit)],
    ["Video: stands still", (span) => said(span.stalled("video"), percent)],
  ],
};

const said = (value: number | null, say: (value: number) => string) => (value === null ? "–" : say(value));

/** A call is rated in windows of 10 s: this many seconds hold at least one that is known. */
function lately(span: Span, seconds: number): Span {
  return new Span(span.data, Math.max(0, span.to - seconds), span.to);
}

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
    this.#rows = [...ROWS, ...ofClass, ...classes.flatMap((name) => QUALITIES[name] ?? [])];
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
      const delay = data.link(last, LINK.delay);
      gauge.fill.style.width = `${Math.min(100, (100 * delay) / most)}%`;
      say(gauge.now, `${ms(1000 * delay)}, ${data.link(last, LINK.packets)} packets`);
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

/** The link and its users in the drawing of the network: data and queue of the direction that is shown. */
export function drawNetwork(state: State): void {
  const { rate, up, transfers, web, call, video, showUp } = state;
  const of = (way: boolean) =>
    transfers.map(({ flows, control, up }) =>
      up === way && flows > 0 ? `${flows} × ${CONTROL_NAMES[control]}` : "",
    );
  const people = [
    web > 0 ? `${web} web users` : "",
    video > 1 ? `${video} viewers of video` : video > 0 ? "a viewer of video" : "",
    call ? "a phone call" : "",
  ];
  const down = [...of(false), ...people].filter(Boolean).join(", ") || "nothing but acknowledgements";
  const uploads = of(true).filter(Boolean).join(", ");
  const wayBack =
    uploads === "" ? "acknowledgements and requests" : `${uploads}, acknowledgements and requests`;
  const limited = isLimitedUp(state) ? `at ${mbit(up)}` : "on a way that is never full";
  say(
    byId("numbers-of"),
    `of the last 10 s and of one run: other seeds than ${state.seed} give other numbers`,
  );
  const peak = linkNamed(state.link)?.peak ?? rate;
  const varies = peak > rate ? `, at times ${mbit(peak)}` : "";
  say(byId("rate-now"), showUp ? mbit(up) : `${mbit(rate)}${varies}`);
  say(byId("delay-of"), showUp ? "from" : "to");
  say(byId("from"), showUp ? "Users" : "Servers");
  say(byId("to"), showUp ? "Servers" : "Users");
  say(byId("senders"), showUp ? wayBack : down);
  say(
    byId("receivers"),
    showUp ? `the other way: ${down}, at ${mbit(rate)}` : `the other way: ${wayBack}, ${limited}`,
  );
}
