// What a lane has shown so far: growing columns, which go back with their world.
import {
  BREAKDOWN,
  DIRECTION_COLUMNS,
  FLOW,
  FLOW_COLUMNS,
  type Frame,
  LINK_COLUMNS,
  QUALITY,
  QUALITY_COLUMNS,
  RESPONSE,
  RESPONSE_COLUMNS,
  type Ready,
  STEP,
  TIME,
} from "./protocol.js";

/** Rows of numbers, all in one array that grows. */
class Rows {
  #values: Float64Array;
  length = 0;

  constructor(readonly columns: number) {
    this.#values = new Float64Array(1024 * columns);
  }

  append(rows: Float64Array): void {
    const needed = this.length * this.columns + rows.length;
    if (needed > this.#values.length) {
      const larger = new Float64Array(Math.max(needed, 2 * this.#values.length));
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values.set(rows, this.length * this.columns);
    this.length = needed / this.columns;
  }

  at(row: number, column: number): number {
    return this.#values[row * this.columns + column] ?? Number.NaN;
  }

  /** The first row whose column, which grows, is above a value. */
  after(column: number, value: number): number {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at(middle, column) > value) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  copy(): Rows {
    const rows = new Rows(this.columns);
    rows.append(this.#values.slice(0, this.length * this.columns));
    return rows;
  }
}

/** Half a step: times of samples are multiples of it, except for their last digit. */
const HALF = STEP / 2;

export class LaneData {
  links: Rows;
  flows = new Rows(FLOW_COLUMNS);
  responses = new Rows(RESPONSE_COLUMNS);
  qualities = new Rows(QUALITY_COLUMNS);
  breakdowns: Rows;
  /** The words whose numbers the breakdowns have. */
  words: string[] = [];
  /** The direction of the link that is looked at: 0 to the users, 1 from them. */
  direction = 0;

  constructor(
    readonly classes: string[],
    readonly columns: string[] = [],
  ) {
    this.breakdowns = new Rows(columns.length);
    this.links = new Rows(LINK_COLUMNS + classes.length);
  }

  static of(ready: Ready): LaneData {
    return new LaneData(ready.classes, ready.columns);
  }

  append(frame: Frame): void {
    this.links.append(frame.samples);
    this.flows.append(frame.flows);
    this.responses.append(frame.responses);
    this.qualities.append(frame.qualities);
    if (this.columns.length > 0) this.breakdowns.append(frame.breakdowns);
    this.words = frame.words;
  }

  /** Forgets what came after a moment. */
  cut(time: number): void {
    this.links.length = this.links.after(TIME, time + HALF);
    this.flows.length = this.flows.after(FLOW.time, time + HALF);
    this.responses.length = this.responses.after(RESPONSE.end, time);
    this.qualities.length = this.qualities.after(QUALITY.time, time + HALF);
    this.breakdowns.length = this.breakdowns.after(BREAKDOWN.end, time);
  }

  copy(): LaneData {
    const data = new LaneData(this.classes, this.columns);
    data.links = this.links.copy();
    data.flows = this.flows.copy();
    data.responses = this.responses.copy();
    data.qualities = this.qualities.copy();
    data.breakdowns = this.breakdowns.copy();
    data.words = this.words;
    data.direction = this.direction;
    return data;
  }

  /** A column of `LINK` of a sample, of the direction that is looked at. */
  link(row: number, column: number): number {
    return this.links.at(row, column + DIRECTION_COLUMNS * this.direction);
  }

  /** Numbers of the samples in a span of time. */
  span(from: number, to: number): [number, number] {
    return [this.links.after(TIME, from + HALF), this.links.after(TIME, to + HALF)];
  }

  get time(): number {
    return this.links.length === 0 ? 0 : this.links.at(this.links.length - 1, TIME);
  }
}
