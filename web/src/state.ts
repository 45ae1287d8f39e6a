// What the page shows, and how its address says it: every field of a state is a field of the address.

import { FURTHER_KINDS } from "./catalog.js";
import type { EngineKind } from "./protocol.js";

/** A value of the running engine that changed. */
export interface Change {
  at: number;
  key: string;
  value: string;
}

export interface Lane {
  /** The queue discipline. */
  kind: string;
  /** Its parameters where they are not the default: TOML values, quantities without their quotes. */
  parameters: Record<string, string>;
  changes: Change[];
}

/** Transfers that never end, all alike. */
export interface Transfers {
  flows: number;
  control: Control;
  /** Round trip without queues, ms. */
  rtt: number;
  ecn: boolean;
  /** Data go from the users to the servers. */
  up: boolean;
  /** Over QUIC instead of TCP. */
  quic: boolean;
}

export const CONTROLS = ["reno", "cubic", "prague", "dctcp", "bbr1", "bbr3", "vegas"] as const;
export type Control = (typeof CONTROLS)[number];

/** Congestion controls as people write them. */
export const CONTROL_NAMES: Readonly<Record<Control, string>> = {
  reno: "Reno",
  cubic: "CUBIC",
  prague: "Prague (L4S)",
  dctcp: "DCTCP",
  bbr1: "BBR version 1",
  bbr3: "BBR version 3",
  vegas: "Vegas",
};

export interface State {
  /** Mbit/s. */
  rate: number;
  /** The rate of the way back, from the users: Mbit/s; the highest is never full. */
  up: number;
  /** Longest wait in the buffer, ms. */
  buffer: number;
  /** Delay of the link, ms: it makes every round trip longer. */
  delay: number;
  /** Whether what is shown of the link is the way from the users. */
  showUp: boolean;
  /** Two groups of transfers; one may be empty. */
  transfers: [Transfers, Transfers];
  /** Web users, and the round trip to their servers in ms. */
  web: number;
  webRtt: number;
  /** Whether somebody calls: the listener is one of the users. */
  call: boolean;
  /** Viewers of video who choose the bit rate of each segment. */
  video: number;
  /** Whether the parts of each response time are computed all along. */
  why: boolean;
  lanes: Lane[];
  seed: number;
  /** Simulated seconds per second; 0: as fast as it goes. */
  speed: number;
  /** The story that runs, if any. */
  story: string;
}

export const RANGES = {
  rate: [0.5, 200],
  up: [0.1, 1000],
  delay: [0, 300],
  video: [0, 20],
  buffer: [5, 2000],
  rtt: [1, 400],
  flows: [0, 50],
  web: [0, 2000],
} as const;

/** Lanes at most. */
export const MOST_LANES = 3;

/** Transfers to the users over TCP without ECN; `has` states what differs. */
export function transfers(
  flows: number,
  control: Control,
  rtt: number,
  has: Partial<Transfers> = {},
): Transfers {
  return { flows, control, rtt, ecn: false, up: false, quic: false, ...has };
}

export function start(): State {
  return {
    rate: 10,
    up: RANGES.up[1],
    buffer: 500,
    delay: 0,
    showUp: false,
    transfers: [transfers(2, "cubic", 40), transfers(0, "reno", 40)],
    web: 20,
    webRtt: 40,
    call: true,
    video: 0,
    why: false,
    lanes: [lane("droptail"), lane("fq-codel")],
    seed: 1,
    speed: 5,
    story: "",
  };
}

export function lane(kind: string, parameters: Record<string, string> = {}): Lane {
  return { kind, parameters, changes: [] };
}

/** Whether the way from the users can be full. */
export function isLimitedUp(state: State): boolean {
  return state.up < RANGES.up[1];
}

/** Which engine a state needs. */
export function engineOf(state: State): EngineKind {
  const hasQuic = state.transfers.some(({ flows, quic }) => quic && flows > 0);
  const isFurther = state.lanes.some(({ kind }) => FURTHER_KINDS.has(kind));
  return state.why || hasQuic || isFurther ? "more" : "first";
}

/** Packets of 1500 bytes that the buffer holds of a direction whose rate this is. */
export function bufferPackets(state: State, rate = state.rate): number {
  return Math.max(2, Math.round((rate * 1e6 * state.buffer) / 1000 / (1500 * 8)));
}

const number = (text: string | null, [low, high]: readonly [number, number], otherwise: number) => {
  const value = text === null ? Number.NaN : Number(text);
  return Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : otherwise;
};

/** What a group of transfers has or has not. */
const FLAGS = ["ecn", "up", "quic"] as const;

function writeTransfers({ flows, control, rtt, ...has }: Transfers): string {
  return [flows, control, rtt, ...FLAGS.filter((flag) => has[flag])].join(",");
}

function readTransfers(text: string | undefined, otherwise: Transfers): Transfers {
  if (text === undefined) return otherwise;
  const [flows, control, rtt, ...flags] = text.split(",");
  return {
    flows: Math.round(number(flows ?? null, RANGES.flows, otherwise.flows)),
    control: CONTROLS.find((known) => known === control) ?? otherwise.control,
    rtt: number(rtt ?? null, RANGES.rtt, otherwise.rtt),
    ecn: flags.includes("ecn"),
    up: flags.includes("up"),
    quic: flags.includes("quic"),
  };
}

function writeLane({ kind, parameters }: Lane): string {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}=${value}`);
  return [kind, ...pairs].join(";");
}

function readLane(text: string, kinds: readonly string[]): Lane | null {
  const [kind = "", ...pairs] = text.split(";");
  if (!kinds.includes(kind)) return null;
  const parameters = pairs.map((pair) => pair.split("=") as [string, string]);
  return lane(kind, Object.fromEntries(parameters.filter(([name, value]) => name && value)));
}

/** The state as the part of an address behind its `#`. */
export function toAddress(state: State): string {
  const fields = new URLSearchParams();
  fields.set("rate", String(state.rate));
  fields.set("up", String(state.up));
  fields.set("buffer", String(state.buffer));
  fields.set("delay", String(state.delay));
  for (const group of state.transfers) fields.append("transfers", writeTransfers(group));
  fields.set("web", String(state.web));
  fields.set("web-rtt", String(state.webRtt));
  fields.set("call", state.call ? "1" : "0");
  fields.set("video", String(state.video));
  for (const one of state.lanes) fields.append("lane", writeLane(one));
  state.lanes.forEach((one, index) => {
    for (const { at, key, value } of one.changes) fields.append("change", [index, at, key, value].join(";"));
  });
  fields.set("seed", String(state.seed));
  fields.set("speed", String(state.speed));
  if (state.why) fields.set("why", "1");
  if (state.showUp) fields.set("show", "up");
  if (state.story !== "") fields.set("story", state.story);
  return fields.toString();
}

/** The state that an address says; what it leaves out, or says wrongly, is as at the start. */
export function fromAddress(text: string, kinds: readonly string[]): State {
  const fields = new URLSearchParams(text.replace(/^#/, ""));
  const state = start();
  const ranged = (name: string, range: readonly [number, number], otherwise: number) =>
    number(fields.get(name), range, otherwise);
  const [first, second] = fields.getAll("transfers");
  const lanes = fields.getAll("lane").flatMap((one) => readLane(one, kinds) ?? []);
  const read: State = {
    rate: ranged("rate", RANGES.rate, state.rate),
    up: ranged("up", RANGES.up, state.up),
    buffer: ranged("buffer", RANGES.buffer, state.buffer),
    delay: ranged("delay", RANGES.delay, state.delay),
    showUp: fields.get("show") === "up",
    transfers: [readTransfers(first, state.transfers[0]), readTransfers(second, state.transfers[1])],
    web: Math.round(ranged("web", RANGES.web, state.web)),
    webRtt: ranged("web-rtt", RANGES.rtt, state.webRtt),
    call: fields.has("call") ? fields.get("call") === "1" : state.call,
    video: Math.round(ranged("video", RANGES.video, state.video)),
    why: fields.get("why") === "1",
    lanes: lanes.length > 0 ? lanes.slice(0, MOST_LANES) : state.lanes,
    seed: Math.round(ranged("seed", [0, 2 ** 53 - 1], state.seed)),
    speed: ranged("speed", [0, 1000], state.speed),
    story: fields.get("story") ?? "",
  };
  for (const change of fields.getAll("change")) {
    const [index, at, key, value] = change.split(";");
    const of = read.lanes[Number(index)];
    if (of && key && value && Number(at) >= 0) of.changes.push({ at: Number(at), key, value });
  }
  return read;
}
