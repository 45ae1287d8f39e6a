// Columns for charts: a window of a lane's samples, thinned out to what a screen can show.
import type { LaneData } from "./data.js";
import { FLOW, FLOW_STEP, LINK, LINK_COLUMNS, RESPONSE, STEP } from "./protocol.js";

/** Points of a line at most. */
const MOST = 500;
/** Throughput is that of so many seconds before. */
const OVER = 0.5;

export type Column = (number | null)[];

export interface Window {
  from: number;
  to: number;
}

/** Times of the points of a window: the same for all lanes and from frame to frame. */
export function points({ from, to }: Window, step = STEP): { times: number[]; stride: number } {
  const stride = Math.max(1, Math.ceil((to - from) / step / MOST));
  const first = Math.max(1, Math.ceil(from / step / stride));
  const count = Math.max(0, Math.floor(to / step / stride + 1e-6) - first + 1);
  return { stride, times: Array.from({ length: count }, (_, index) => (first + index) * stride * step) };
}

/** Sample number `n`, from 0, is of time (n + 1) steps. */
const row = (time: number) => Math.round(time / STEP) - 1;

/** The longest queueing delay between a point and the one before, ms. */
export function delays(data: LaneData, times: number[], stride: number): Column {
  return times.map((time) => {
    const last = row(time);
    if (last >= data.links.length) return null;
    let most = 0;
    for (let at = Math.max(0, last - stride + 1); at <= last; at += 1)
      most = Math.max(most, data.link(at, LINK.delay));
    return 1000 * most;
  });
}

/** How much a counter of the link grew between a point and the one before. */
export function growths(data: LaneData, column: number, times: number[], stride: number): number[] {
  return times.map((time) => {
    const [last, before] = [row(time), row(time) - stride];
    if (last >= data.links.length) return 0;
    return data.link(last, column) - (before < 0 ? 0 : data.link(before, column));
  });
}

/** Application data that a class received, Mbit/s. */
export function throughputs(data: LaneData, index: number, times: number[]): Column {
  const column = LINK_COLUMNS + index;
  const over = Math.round(OVER / STEP);
  return times.map((time) => {
    const last = row(time);
    if (last >= data.links.length) return null;
    const before = last - over;
    const bytes = data.links.at(last, column) - (before < 0 ? 0 : data.links.at(before, column));
    return (8e-6 * bytes) / (Math.min(over, last + 1) * STEP);
  });
}

export interface FlowLines {
  times: number[];
  /** For each connection its class, its windows in kB and its round trips in ms. */
  flows: { flow: number; class: number; cwnd: Column; rtt: Column }[];
}

/** Connections in a window: those of the first classes, which last longest. */
export function flowLines(data: LaneData, window: Window): FlowLines {
  const { times, stride } = points(window, FLOW_STEP);
  const place = new Map(times.map((time, index) => [Math.round(time / FLOW_STEP), index]));
  const found = new Map<number, FlowLines["flows"][number]>();
  const rows = data.flows;
  for (let at = rows.after(FLOW.time, window.from); at < rows.length; at += 1) {
    const tick = Math.round(rows.at(at, FLOW.time) / FLOW_STEP);
    const index = tick % stride === 0 ? place.get(tick) : undefined;
    if (index === undefined) continue;
    const flow = rows.at(at, FLOW.flow);
    let line = found.get(flow);
    if (line === undefined) {
      const empty = () => Array<number | null>(times.length).fill(null);
      line = { flow, class: rows.at(at, FLOW.class), cwnd: empty(), rtt: empty() };
      found.set(flow, line);
    }
    const rtt = rows.at(at, FLOW.rtt);
    line.cwnd[index] = rows.at(at, FLOW.cwnd) / 1000;
    line.rtt[index] = Number.isNaN(rtt) ? null : 1000 * rtt;
  }
  return { times, flows: [...found.values()].sort((one, other) => one.flow - other.flow) };
}

/** Shares at which a distribution is drawn. */
export const SHARES = Array.from({ length: 101 }, (_, index) => index / 100);

/** Response times of a class so far at `SHARES`, s; none while there are fewer than 10. */
export function responseQuantiles(data: LaneData, index: number): number[] | null {
  const { responses } = data;
  const times: number[] = [];
  for (let at = 0; at < responses.length; at += 1)
    if (responses.at(at, RESPONSE.class) === index) times.push(responses.at(at, RESPONSE.seconds));
  if (times.length < 10) return null;
  const sorted = Float64Array.from(times).sort();
  return SHARES.map((share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
}
