// What the page and the worker of a lane say to each other. Times are seconds of simulated time.

/** What a lane did since the last frame. */
export interface Frame {
  /** Up to when it has been simulated. */
  time: number;
  /** Rows of `Lab.samples`. */
  samples: Float64Array;
  /** Rows of `Lab.flows`. */
  flows: Float64Array;
  /** Rows of `Lab.responses`. */
  responses: Float64Array;
  /** Rows of `Lab.qualities`. */
  qualities: Float64Array;
  /** Rows of `Lab.breakdowns`, and all words so far that they have the numbers of. */
  breakdowns: Float64Array;
  words: string[];
}

/** What a lane is when it begins, or goes on from the copy of another. */
export interface Ready {
  classes: string[];
  changeable: string[];
  end: number;
  /** Columns of breakdowns; none if the scenario asks for none. */
  columns: string[];
}

/** The first engine is in the page; the second one, loaded when it is needed, has QUIC and breakdowns. */
export type EngineKind = "first" | "more";

/** A world as it stands at a moment: the engine's linear memory, and where in it the world is. */
export interface World {
  time: number;
  memory: ArrayBuffer;
  lab: number;
  ready: Ready;
}

/** A key and its value from some moment on. */
export type Pair = [key: string, value: string];

/** A scenario, and the text of the file that it names, if any. */
export interface Named {
  scenario: string;
  file: string | undefined;
}

export interface Requests {
  /** Compiles the engine. */
  engine: { ask: { module: WebAssembly.Module; kind: EngineKind }; answer: string };
  /** A new world at time 0. */
  load: { ask: Named; answer: Ready };
  /** Simulates up to `to`, or as far as `budget` milliseconds last. */
  advance: { ask: { to: number; budget: number }; answer: Frame };
  /** Gives keys other values from now on: one change. */
  set: { ask: { pairs: Pair[] }; answer: null };
  /** Goes back to a moment. What was seen until then need not be said again. */
  back: { ask: { to: number }; answer: { time: number } };
  /** A copy of the world before its last change. */
  fork: { ask: Record<string, never>; answer: World };
  /** Goes on from a copy. */
  adopt: { ask: { world: World }; answer: Ready };
  /** Runs a scenario apart from the world under way: its summary. */
  report: { ask: Named; answer: string };
}

export type Name = keyof Requests;

/** A request on its way; answers bear its number. */
export type Ask = { [N in Name]: { id: number; name: N; ask: Requests[N]["ask"] } }[Name];

export type Answer = { id: number; answer: unknown } | { id: number; error: string };

/** Simulated seconds between two samples of the link, and of connections. */
export const STEP = 0.01;
export const FLOW_STEP = 0.05;

/** Columns of a row of `Lab.samples`: time, then these for each direction, then those of the classes. */
export const LINK = {
  delay: 1,
  packets: 2,
  bytes: 3,
  rate: 4,
  departedBytes: 5,
  departed: 6,
  dropped: 7,
  marked: 8,
} as const;
export const TIME = 0;
export const DIRECTION_COLUMNS = 8;
export const LINK_COLUMNS = 1 + 2 * DIRECTION_COLUMNS;
/** Columns of a row of `Lab.flows`, and of `Lab.responses`. */
export const FLOW = { time: 0, flow: 1, class: 2, cwnd: 3, rtt: 4, received: 5 } as const;
export const FLOW_COLUMNS = 6;
export const RESPONSE = { end: 0, class: 1, seconds: 2 } as const;
export const RESPONSE_COLUMNS = 3;
/** Columns of a row of `Lab.qualities`: all but time and class grow. */
export const QUALITY = {
  time: 0,
  class: 1,
  scores: 2,
  scoreSum: 3,
  packets: 4,
  lost: 5,
  played: 6,
  stalled: 7,
  stalls: 8,
  segments: 9,
  rateSum: 10,
} as const;
export const QUALITY_COLUMNS = 11;
/** The first columns of a row of `Lab.breakdowns`; `Ready.columns` has all. */
export const BREAKDOWN = { end: 0, class: 1, flow: 2, bytes: 3, response: 4 } as const;
