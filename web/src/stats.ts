// Numbers of a lane over a span of time: those in the table, and those in the stories.
import type { LaneData } from "./data.js";
import { BREAKDOWN, FLOW, LINK, LINK_COLUMNS, QUALITY, RESPONSE, TIME } from "./protocol.js";
import { breakdown, partOf } from "./why.js";

/** The value below which a share of the values lies; none of no values. */
export function quantile(values: Float64Array | number[], share: number): number | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? null;
}

export class Span {
  readonly #first: number;
  readonly #last: number;

  constructor(
    readonly data: LaneData,
    readonly from: number,
    readonly to: number,
  ) {
    const [first, behind] = data.span(from, to);
    [this.#first, this.#last] = [first, behind - 1];
  }

  get isEmpty(): boolean {
    return this.#last <= this.#first;
  }

  /** How much a counter of the link grew from the first sample to the last. */
  #growth(column: number): number {
    if (this.isEmpty) return 0;
    return this.data.link(this.#last, column) - this.data.link(this.#first, column);
  }

  /** Seconds from the first sample to the last. */
  get seconds(): number {
    return this.isEmpty ? 0 : this.data.links.at(this.#last, TIME) - this.data.links.at(this.#first, TIME);
  }

  column(column: number): Float64Array {
    const length = Math.max(0, this.#last - this.#first + 1);
    return Float64Array.from({ length }, (_, row) => this.data.link(this.#first + row, column));
  }

  /** Queueing delay that an arriving packet meets, ms. */
  meanDelay(): number {
    const delays = this.column(LINK.delay);
    return delays.length === 0 ? 0 : (1000 * delays.reduce((sum, delay) => sum + delay, 0)) / delays.length;
  }

  delay(share: number): number {
    return 1000 * (quantile(this.column(LINK.delay), share) ?? 0);
  }

  /** The share of samples in which next to nothing waits. */
  idle(): number {
    const packets = this.column(LINK.packets);
    return packets.length === 0 ? 0 : packets.filter((count) => count === 0).length / packets.length;
  }

  /** What left the link, Mbit/s. */
  sent(): number {
    return this.seconds === 0 ? 0 : (8e-6 * this.#growth(LINK.departedBytes)) / this.seconds;
  }

  /** The share of the link's rate that packets took, framing included: at most 1. */
  use(): number {
    const rates = this.column(LINK.rate);
    if (this.seconds === 0) return 0;
    const capacity = (rates.reduce((sum, rate) => sum + rate, 0) / rates.length) * this.seconds;
    // Ethernet adds 38 bytes to each packet.
    const bits = 8 * (this.#growth(LINK.departedBytes) + 38 * this.#growth(LINK.departed));
    return Math.min(1, bits / capacity);
  }

  get drops(): number {
    return this.#growth(LINK.dropped);
  }

  get marks(): number {
    return this.#growth(LINK.marked);
  }

  /** Drops of all packets that arrived. */
  dropShare(): number {
    const arrived = this.drops + this.#growth(LINK.departed);
    return arrived === 0 ? 0 : this.drops / arrived;
  }

  markShare(): number {
    const left = this.#growth(LINK.departed);
    return left === 0 ? 0 : this.marks / left;
  }

  /** Application data that the clients of a class received, Mbit/s. */
  throughput(name: string): number {
    const index = this.data.classes.indexOf(name);
    if (index < 0 || this.seconds === 0) return 0;
    const { links } = this.data;
    const column = LINK_COLUMNS + index;
    return (8e-6 * (links.at(this.#last, column) - links.at(this.#first, column))) / this.seconds;
  }

  /** Mean of the smoothed round trips that the connections of a class saw, ms. */
  meanRtt(name: string): number {
    const index = this.data.classes.indexOf(name);
    const { flows } = this.data;
    let [sum, count] = [0, 0];
    for (let row = flows.after(FLOW.time, this.from); row < flows.after(FLOW.time, this.to); row += 1) {
      const rtt = flows.at(row, FLOW.rtt);
      if (flows.at(row, FLOW.class) !== index || Number.isNaN(rtt)) continue;
      [sum, count] = [sum + rtt, count + 1];
    }
    return count === 0 ? 0 : (1000 * sum) / count;
  }

  /** Response times of a class that ended in the span, s. */
  responses(name: string): number[] {
    const index = this.data.classes.indexOf(name);
    const { responses } = this.data;
    const found: number[] = [];
    const behind = responses.after(RESPONSE.end, this.to);
    for (let row = responses.after(RESPONSE.end, this.from); row < behind; row += 1)
      if (responses.at(row, RESPONSE.class) === index) found.push(responses.at(row, RESPONSE.seconds));
    return found;
  }

  /** What the slowest responses of a class spend these shares of their time with, by cause. */
  spent(name: string, slowest: number): Map<string, number> {
    const index = this.data.classes.indexOf(name);
    const { breakdowns } = this.data;
    const rows: number[] = [];
    const behind = breakdowns.after(BREAKDOWN.end, this.to);
    for (let row = breakdowns.after(BREAKDOWN.end, this.from); row < behind; row += 1)
      if (breakdowns.at(row, BREAKDOWN.class) === index) rows.push(row);
    rows.sort(
      (one, other) => breakdowns.at(other, BREAKDOWN.response) - breakdowns.at(one, BREAKDOWN.response),
    );
    const times = new Map<string, number>();
    let whole = 0;
    for (const row of rows.slice(0, Math.ceil(slowest * rows.length))) {
      const one = breakdown(this.data, row);
      whole += one.nanoseconds;
      for (const [key, time] of one.parts) {
        const { doing } = partOf(key).cause;
        times.set(doing, (times.get(doing) ?? 0) + time);
      }
    }
    return new Map([...times].map(([doing, time]) => [doing, time / whole]));
  }

  /** Median response time of a class, ms; 0 if there is none. */
  medianResponse(name: string): number {
    return 1000 * (quantile(this.responses(name), 0.5) ?? 0);
  }

  responseQuantile(name: string, share: number): number {
    return 1000 * (quantile(this.responses(name), share) ?? 0);
  }

  /** How much columns of `QUALITY` of a class grew in the span. */
  #grown(name: string, columns: number[]): number[] {
    const index = this.data.classes.indexOf(name);
    const { qualities } = this.data;
    const of = (time: number) => {
      for (let row = qualities.after(QUALITY.time, time + 1e-6) - 1; row >= 0; row -= 1)
        if (qualities.at(row, QUALITY.class) === index) return row;
      return -1;
    };
    const [first, last] = [of(this.from), of(this.to)];
    return columns.map(
      (column) => (last < 0 ? 0 : qualities.at(last, column)) - (first < 0 ? 0 : qualities.at(first, column)),
    );
  }

  /** Mean opinion score of the windows of 10 s of a class of calls that were rated in the span. */
  opinion(name: string): number | null {
    const [count = 0, sum = 0] = this.#grown(name, [QUALITY.scores, QUALITY.scoreSum]);
    return count > 0 ? sum / count : null;
  }

  /** Mean bit rate of the segments of video that arrived, Mbit/s. */
  videoRate(name: string): number | null {
    const [count = 0, sum = 0] = this.#grown(name, [QUALITY.segments, QUALITY.rateSum]);
    return count > 0 ? (1e-6 * sum) / count : null;
  }

  /** The share of the time, from their first picture on, in which videos stood still. */
  stalled(name: string): number | null {
    const [played = 0, stalled = 0] = this.#grown(name, [QUALITY.played, QUALITY.stalled]);
    return played + stalled > 0 ? stalled / (played + stalled) : null;
  }
}
