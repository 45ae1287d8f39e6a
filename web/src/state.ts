// What the page shows, and how its address says it: every field of a state is a field of the address.

/** A value of the running engine that became another one. */
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
  /** Longest wait in the buffer, ms. */
  buffer: number;
  /** Two groups of transfers; one may be empty. */
  transfers: [Transfers, Transfers];
  /** Web users, and the round trip to their servers in ms. */
  web: number;
  webRtt: number;
  /** Whether somebody talks: small packets at a constant rate. */
  call: boolean;
  lanes: Lane[];
  seed: number;
  /** Simulated seconds per second; 0: as fast as it goes. */
  speed: number;
  /** The story that is told, if any. */
  story: string;
}

export const RANGES = {
  rate: [0.5, 200],
  buffer: [5, 2000],
  rtt: [1, 400],
  flows: [0, 50],
  web: [0, 2000],
} as const;

/** Lanes at most. */
export const MOST_LANES = 3;

export function start(): State {
  return {
    rate: 10,
    buffer: 500,
    transfers: [
      { flows: 2, control: "cubic", rtt: 40, ecn: false },
      { flows: 0, control: "reno", rtt: 40, ecn: false },
    ],
    web: 20,
    webRtt: 40,
    call: true,
    lanes: [lane("droptail"), lane("fq-codel")],
    seed: 1,
    speed: 5,
    story: "",
  };
}

export function lane(kind: string, parameters: Record<string, string> = {}): Lane {
  return { kind, parameters, changes: [] };
}

/** Packets of 1500 bytes that a buffer holds. */
export function bufferPackets(state: State): number {
  return Math.max(2, Math.round((state.rate * 1e6 * state.buffer) / 1000 / (1500 * 8)));
}

const number = (text: string | null, [low, high]: readonly [number, number], otherwise: number) => {
  const value = text === null ? Number.NaN : Number(text);
  return Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : otherwise;
};

function writeTransfers({ flows, control, rtt, ecn }: Transfers): string {
  return [flows, control, rtt, ...(ecn ? ["ecn"] : [])].join(",");
}

function readTransfers(text: string | undefined, otherwise: Transfers): Transfers {
  if (text === undefined) return otherwise;
  const [flows, control, rtt, ecn] = text.split(",");
  return {
    flows: Math.round(number(flows ?? null, RANGES.flows, otherwise.flows)),
    control: CONTROLS.find((known) => known === control) ?? otherwise.control,
    rtt: number(rtt ?? null, RANGES.rtt, otherwise.rtt),
    ecn: ecn === "ecn",
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
  fields.set("buffer", String(state.buffer));
  for (const group of state.transfers) fields.append("transfers", writeTransfers(group));
  fields.set("web", String(state.web));
  fields.set("web-rtt", String(state.webRtt));
  fields.set("call", state.call ? "1" : "0");
  for (const one of state.lanes) fields.append("lane", writeLane(one));
  state.lanes.forEach((one, index) => {
    for (const { at, key, value } of one.changes) fields.append("change", [index, at, key, value].join(";"));
  });
  fields.set("seed", String(state.seed));
  fields.set("speed", String(state.speed));
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
    buffer: ranged("buffer", RANGES.buffer, state.buffer),
    transfers: [readTransfers(first, state.transfers[0]), readTransfers(second, state.transfers[1])],
    web: Math.round(ranged("web", RANGES.web, state.web)),
    webRtt: ranged("web-rtt", RANGES.rtt, state.webRtt),
    call: fields.has("call") ? fields.get("call") === "1" : state.call,
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
