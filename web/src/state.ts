// What the page shows, and how its address says it: every field of a state is a field of the address.

import { FURTHER_KINDS } from "./catalog.js";
import { type Link, linkNamed, OWN, reasonAgainst, type Way } from "./links.js";
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
  /** A link by its name, which has rates, delays, buffers and round trips of its own; empty: the sliders. */
  link: string;
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
    link: "",
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

/** The discipline of a lane. */
export function kindOf(state: State, { kind }: Lane): string {
  return kind === OWN ? (linkNamed(state.link)?.forward.kind ?? "droptail") : kind;
}

/** Which engine a state needs. */
export function engineOf(state: State): EngineKind {
  const hasQuic = state.transfers.some(({ flows, quic }) => quic && flows > 0);
  const isFurther = state.lanes.some((one) => FURTHER_KINDS.has(kindOf(state, one)));
  return state.why || hasQuic || isFurther ? "more" : "first";
}

/** The rate of a direction, Mbit/s. */
export function rateOf(state: State, way: Way): number {
  return way === "forward" ? state.rate : state.up;
}

/** Packets of 1500 bytes that the buffer of a direction holds. */
export function bufferPackets(state: State, way: Way = "forward"): number {
  const lasting = (rateOf(state, way) * 1e6 * state.buffer) / 1000 / (1500 * 8);
  return linkNamed(state.link)?.[way].packets ?? Math.max(2, Math.round(lasting));
}

const within = ([low, high]: readonly [number, number], value: number) =>
  Math.min(high, Math.max(low, value));

const number = (text: string | null, range: readonly [number, number], otherwise: number) => {
  const value = text === null ? Number.NaN : Number(text);
  return Number.isFinite(value) ? within(range, value) : otherwise;
};

/** Why the page does not show a link; empty if it does. */
export function unfit(link: Link): string {
  return reasonAgainst(link, RANGES.rate[1]);
}

/** Gives a state the numbers of its link. An unknown link, or one that the page does not show, is none. */
function takeNumbers(state: State): void {
  const link = linkNamed(state.link);
  if (link === undefined || unfit(link) !== "") {
    state.link = "";
    return;
  }
  const { forward, reverse, rttMs, delayMs } = link;
  Object.assign(state, { rate: forward.rate, up: reverse.rate, delay: delayMs, webRtt: rttMs - delayMs });
  if (forward.packets !== undefined) state.buffer = (forward.packets * 12) / forward.rate;
  for (const group of state.transfers) group.rtt = rttMs - delayMs;
}

/** The lanes of a state whose link has just been chosen: the first has the link's own queues. */
function ownFirst(lanes: Lane[]): Lane[] {
  return lanes.some(({ kind }) => kind === OWN) ? lanes : [lane(OWN), ...lanes.slice(1)];
}

/** Chooses a link by its name. With none the sliders begin near the numbers of the link that was. */
export function chooseLink(state: State, name: string): void {
  if (name === "") {
    state.lanes = state.lanes.map((one) => (one.kind === OWN ? lane(kindOf(state, one)) : one));
    for (const key of ["rate", "up", "delay", "buffer"] as const)
      state[key] = within(RANGES[key], state[key]);
    for (const group of state.transfers) group.rtt = within(RANGES.rtt, group.rtt);
    state.webRtt = within(RANGES.rtt, state.webRtt);
  }
  state.link = name;
  takeNumbers(state);
  if (state.link !== "") state.lanes = ownFirst(state.lanes);
}

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
  if (state.link !== "") fields.set("link", state.link);
  for (const key of ["rate", "up", "buffer", "delay"] as const) fields.set(key, String(state[key]));
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
  const read: State = {
    link: fields.get("link") ?? "",
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
    lanes: [],
    seed: Math.round(ranged("seed", [0, 2 ** 53 - 1], state.seed)),
    speed: ranged("speed", [0, 1000], state.speed),
    story: fields.get("story") ?? "",
  };
  takeNumbers(read);
  const known = read.link === "" ? kinds : [...kinds, OWN];
  const lanes = fields.getAll("lane").flatMap((one) => readLane(one, known) ?? []);
  if (lanes.length > 0) read.lanes = lanes.slice(0, MOST_LANES);
  else read.lanes = read.link === "" ? state.lanes : ownFirst(state.lanes);
  for (const change of fields.getAll("change")) {
    const [index, at, key, value] = change.split(";");
    const of = read.lanes[Number(index)];
    if (of && key && value && Number(at) >= 0) of.changes.push({ at: Number(at), key, value });
  }
  return read;
}
