// Everything that is drawn of the lanes, frame by frame.
import { type About, Chart, type Line, roof } from "./charts.js";
import { delays, flowLines, points, responseQuantiles, SHARES, throughputs, type Window } from "./columns.js";
import type { LaneData } from "./data.js";
import { byId, h } from "./dom.js";
import type { Player } from "./player.js";
import { CLASSES } from "./scenario.js";
import { Ticks } from "./ticks.js";

export const LETTERS = ["A", "B", "C"];

/** Connections that a lane's charts show at most: the samples have no more. */
const MOST_FLOWS = 12;
/** One of three frames draws the charts of a lane, the next frame those of the next lane. */
const TURNS = 3;

interface Card {
  throughput: Chart;
  cwnd: Chart;
  rtt: Chart;
}

export class View {
  #delay: Chart | null = null;
  #responses: Chart | null = null;
  #cards: Card[] = [];
  readonly #ticks = new Ticks(byId<HTMLCanvasElement>("ticks"));
  #frame = 0;
  /** Tops of the axes that the lanes share. */
  #tops = { cwnd: 1, rtt: 1 };
  #names: string[] = [];
  #classes: string[] = [];
  seconds = 30;

  constructor(
    readonly player: Player,
    /** A point of the distribution of response times was clicked. */
    readonly onResponse: (seconds: number, share: number) => void,
  ) {}

  /** Makes the charts of these lanes anew. */
  build(names: string[], classes: string[], rate: number): void {
    this.close();
    [this.#names, this.#classes] = [names, classes];
    const lanes: Line[] = names.map((name, index) => ({
      label: `${LETTERS[index]} ${name}`,
      color: `lane-${index}`,
      width: 2,
    }));
    const narrow = innerWidth < 700;
    this.#delay = new Chart(
      byId("delay"),
      {
        label: "Queueing delay over time in milliseconds, one line for each lane",
        height: narrow ? 190 : 250,
      },
      lanes,
    );
    this.#responses = new Chart(
      byId("responses"),
      {
        label: "Share of web responses that took at most so many seconds, one line for each lane",
        height: narrow ? 190 : 230,
        x: "log",
        top: () => 1,
      },
      lanes,
    );
    this.#responses.onClick(this.onResponse);
    const ofClass: Line[] = classes.map((name) => ({ label: name, color: `class-${name}` }));
    const ofFlows: Line[] = Array.from({ length: MOST_FLOWS }, (_, index) => ({
      label: `connection ${index + 1}`,
      color: "quiet",
    }));
    this.#cards = names.map((name, index) => {
      const chart = (what: string, unit: string, top: () => number, lines: Line[]) => {
        const about: About = { label: `${what} of ${name} over time in ${unit}`, height: 110, top };
        return new Chart(byId(`${what.split(" ")[0]?.toLowerCase()}-${index}`), about, lines);
      };
      return {
        throughput: chart("Throughput by class", "Mbit/s", () => roof(this.#top(rate)), ofClass),
        cwnd: chart("Windows of connections", "kB", () => roof(this.#tops.cwnd), this.#perClass(ofFlows)),
        rtt: chart("Trips of connections", "ms", () => roof(this.#tops.rtt), this.#perClass(ofFlows)),
      };
    });
    this.draw(true);
  }

  #top(rate: number): number {
    return rate / 1.06;
  }

  /** Lines for connections: so many of each class of which connections are drawn. */
  #perClass(lines: Line[]): Line[] {
    return this.#drawn().flatMap((name) =>
      lines.map((line) => ({ ...line, color: `class-${name}`, width: 1 })),
    );
  }

  /** The classes whose connections are drawn: transfers, which last; else web users. */
  #drawn(): string[] {
    const lasting = this.#classes.filter((name) => name.startsWith("transfers"));
    return lasting.length > 0 ? lasting : this.#classes.filter((name) => name === "web");
  }

  get window(): Window {
    const to = Math.max(this.player.time, this.seconds);
    return { from: to - this.seconds, to };
  }

  draw(everything = false): void {
    const lanes = this.player.lanes.map((lane) => lane.data);
    if (lanes.length !== this.#names.length || this.#delay === null) return;
    const window = this.window;
    const x: [number, number] = [window.from, window.to];
    const { times, stride } = points({ from: window.from, to: this.player.time });
    this.#delay.draw([times, ...lanes.map((lane) => delays(lane, times, stride))], x);
    this.#ticks.draw(lanes, window, LETTERS);
    this.#frame += 1;
    lanes.forEach((lane, index) => {
      if (everything || (this.#frame + index) % TURNS === 0) this.#drawCard(index, lane, window, times);
    });
    if (everything || this.#frame % 15 === 0) this.#drawResponses(lanes);
  }

  #drawCard(index: number, data: LaneData, window: Window, times: number[]): void {
    const card = this.#cards[index];
    if (card === undefined) return;
    const x: [number, number] = [window.from, window.to];
    card.throughput.draw([times, ...this.#classes.map((_, at) => throughputs(data, at, times))], x);
    const lines = flowLines(data, { from: window.from, to: this.player.time });
    const drawn = this.#drawn().flatMap((name) => {
      const of = this.#classes.indexOf(name);
      const flows = lines.flows.filter((flow) => flow.class === of).slice(0, MOST_FLOWS);
      return Array.from({ length: MOST_FLOWS }, (_, at) => flows[at]);
    });
    const empty = lines.times.map(() => null);
    for (const [what, chart] of [["cwnd", card.cwnd] as const, ["rtt", card.rtt] as const]) {
      const columns = drawn.map((flow) => flow?.[what] ?? empty);
      const most = columns.reduce((top, column) => Math.max(top, ...column.map((value) => value ?? 0)), 0);
      // The first lane begins the common axis anew; the others raise it.
      this.#tops[what] =
        index === 0 ? Math.max(most, 0.97 * this.#tops[what]) : Math.max(most, this.#tops[what]);
      chart.draw([lines.times, ...columns], x);
    }
  }

  #drawResponses(lanes: LaneData[]): void {
    const quantiles = lanes.map((lane) => responseQuantiles(lane, lane.classes.indexOf("web")));
    byId("responses-none").hidden = quantiles.some((column) => column !== null);
    // Times of all lanes are points of the axis: each line has values at its own.
    const all = [...new Set(quantiles.flatMap((column) => column ?? []))].sort((one, other) => one - other);
    const columns = quantiles.map((column) => {
      const share = new Map(column?.map((time, at) => [time, SHARES[at] ?? 0]));
      return all.map((time) => share.get(time));
    });
    this.#responses?.draw([all, ...columns] as Parameters<Chart["draw"]>[0], [0.01, 100]);
  }

  close(): void {
    this.#delay?.close();
    this.#responses?.close();
    for (const card of this.#cards) for (const chart of Object.values(card)) (chart as Chart).close();
    this.#cards = [];
    this.#tops = { cwnd: 1, rtt: 1 };
  }
}

/** The places of a lane's charts, and what they show. */
export function cardCharts(index: number, classes: string[]): HTMLElement {
  const legend = h(
    "p",
    { class: "legend" },
    ...classes.map((name) =>
      h(
        "span",
        {},
        h("i", { style: `background: var(--class-${name})` }),
        CLASSES[name as keyof typeof CLASSES] ?? name,
      ),
    ),
  );
  const place = (id: string, title: string, unit: string) => [
    h("h3", {}, title, " ", h("small", {}, unit)),
    h("div", { id: `${id}-${index}`, class: "chart" }),
  ];
  return h(
    "div",
    { class: "charts" },
    legend,
    ...place("throughput", "Throughput by class", "Mbit/s"),
    ...place("windows", "Congestion windows", "kB, a line for each connection"),
    ...place("trips", "Round trips as the senders see them", "ms"),
  );
}
