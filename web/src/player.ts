// Lanes that run side by side, in step with one clock.

import { LaneData } from "./data.js";
import { LaneClient } from "./lane_client.js";
import type { EngineKind, Frame, Named, Pair, Ready } from "./protocol.js";
import { LONGEST, named } from "./scenario.js";
import { type Change, engineOf, type State } from "./state.js";

/** Milliseconds that a lane may simulate between two frames of the page. */
const BUDGET = 12;
/** A lane may be so much ahead of the others, in simulated seconds and in real ones. */
const LEAD = 1;
const LEAD_REAL = 0.1;

const round = (time: number) => Math.round(time * 100) / 100;

/** A lane under way. */
export class LaneRun {
  time = 0;
  isBusy = false;
  data: LaneData;
  readonly changeable: Set<string>;

  constructor(
    readonly client: LaneClient,
    ready: Ready,
    readonly changes: Change[],
  ) {
    this.data = LaneData.of(ready);
    this.changeable = new Set(ready.changeable);
  }

  async advance(to: number): Promise<void> {
    this.isBusy = true;
    try {
      const frame: Frame = await this.client.ask("advance", { to, budget: BUDGET });
      this.data.append(frame);
      this.time = frame.time;
    } finally {
      this.isBusy = false;
    }
  }
}

export class Player {
  lanes: LaneRun[] = [];
  speed = 1;
  isPlaying = false;
  /** The name of what the engine does. */
  engine = "";
  /** What the lanes do for somebody else than the clock, one thing after another. */
  #work: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #wanted = 0;
  #lastTick = 0;
  #clients: { client: LaneClient; kind: EngineKind }[] = [];

  constructor(
    readonly modules: Record<EngineKind, () => Promise<WebAssembly.Module>>,
    readonly onError: (message: string) => void,
  ) {}

  /** Up to when every lane has been simulated. */
  get time(): number {
    return this.lanes.length === 0 ? 0 : Math.min(...this.lanes.map((lane) => lane.time));
  }

  get isOver(): boolean {
    return this.time >= LONGEST;
  }

  /** Does something while the clock stands. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const done = this.#work.then(async () => {
      while (this.lanes.some((lane) => lane.isBusy)) await new Promise((resume) => setTimeout(resume));
      return work();
    });
    this.#work = done
      .catch(() => undefined)
      .finally(() => {
        this.#waiting -= 1;
        this.#wanted = this.time;
      });
    return done;
  }

  async #client(index: number, kind: EngineKind): Promise<LaneClient> {
    const known = this.#clients[index];
    if (known?.kind === kind) return known.client;
    const module = await this.modules[kind]();
    known?.client.close();
    const client = new LaneClient();
    this.#clients[index] = { client, kind };
    this.engine = await client.ask("engine", { module, kind });
    return client;
  }

  /** Begins anew. */
  load(state: State): Promise<void> {
    return this.#alone(async () => {
      const lanes = state.lanes.map(async (lane, index) => {
        const client = await this.#client(index, engineOf(state));
        const ready = await client.ask("load", named(state, lane));
        return new LaneRun(client, ready, lane.changes);
      });
      this.lanes = await Promise.all(lanes);
    });
  }

  /** Brings all lanes to one time, that of the furthest. */
  async #together(): Promise<number> {
    const time = round(Math.max(0, ...this.lanes.map((lane) => lane.time)));
    for (const lane of this.lanes) while (lane.time < time - 1e-9) await lane.advance(time);
    return time;
  }

  /** Changes values from now on: of one lane, or of all. Keys that a lane has not are left out. */
  change(pairs: Pair[], only?: number): Promise<void> {
    return this.#alone(async () => {
      const at = await this.#together();
      for (const [index, lane] of this.lanes.entries()) {
        if (only !== undefined && only !== index) continue;
        const own = pairs.filter(([key]) => lane.changeable.has(key));
        if (own.length === 0) continue;
        await lane.client.ask("set", { pairs: own });
        lane.changes.push(...own.map(([key, value]) => ({ at, key, value })));
      }
    });
  }

  /** Goes back to a moment; what changed after it has not changed. */
  back(to: number): Promise<void> {
    return this.#alone(async () => {
      await Promise.all(
        this.lanes.map(async (lane) => {
          const { time } = await lane.client.ask("back", { to: round(to) });
          lane.data.cut(time);
          lane.time = time;
          const kept = lane.changes.filter(({ at }) => at < time);
          lane.changes.splice(0, lane.changes.length, ...kept);
        }),
      );
    });
  }

  /** The same moment without the last change: the world of a lane before it goes on as another lane. */
  without(index: number, at: number): Promise<LaneRun> {
    return this.#alone(async () => {
      const lane = this.lanes[index];
      if (lane === undefined) throw new Error("there is no such lane");
      const now = await this.#together();
      const world = await lane.client.ask("fork", {});
      const client = await this.#client(at, this.#clients[index]?.kind ?? "first");
      const ready = await client.ask("adopt", { world });
      const other = new LaneRun(
        client,
        ready,
        lane.changes.filter((change) => change.at < world.time),
      );
      other.data = lane.data.copy();
      other.data.cut(world.time);
      other.time = world.time;
      this.lanes[at] = other;
      while (other.time < now - 1e-9) await other.advance(now);
      return other;
    });
  }

  /** The run of a scenario from its beginning to its end, apart from what the lane does. */
  report(index: number, scenario: Named): Promise<string> {
    return this.#alone(async () => {
      const lane = this.lanes[index];
      if (lane === undefined) throw new Error("there is no such lane");
      return lane.client.ask("report", scenario);
    });
  }

  /** A lane's run again up to a moment, with the parts of each response time. */
  async brokenDown(index: number, state: State, to: number): Promise<LaneData> {
    const lane = state.lanes[index];
    const client = new LaneClient();
    try {
      if (lane === undefined) throw new Error("there is no such lane");
      await client.ask("engine", { module: await this.modules.more(), kind: "more" });
      const data = LaneData.of(await client.ask("load", named({ ...state, why: true }, lane)));
      for (let time = 0; time < to; ) {
        const frame = await client.ask("advance", { to, budget: BUDGET });
        data.append(frame);
        time = frame.time;
      }
      return data;
    } finally {
      client.close();
    }
  }

  /** So much further, and no more. */
  step(seconds: number): Promise<void> {
    return this.#alone(async () => {
      const to = round((await this.#together()) + seconds);
      for (const lane of this.lanes) while (lane.time < to - 1e-9) await lane.advance(to);
    });
  }

  /** A frame of the page: sends lanes on to where the clock is. */
  tick(now: number): void {
    const passed = Math.min(LEAD_REAL, (now - this.#lastTick) / 1000);
    this.#lastTick = now;
    if (!this.isPlaying || this.#waiting > 0 || this.isOver) return;
    const time = this.time;
    const lead = this.speed > 0 ? Math.max(0.05, this.speed * LEAD_REAL) : LEAD;
    this.#wanted = this.speed > 0 ? Math.min(this.#wanted + passed * this.speed, time + lead) : time + lead;
    const to = round(Math.min(LONGEST, this.#wanted));
    for (const lane of this.lanes) {
      if (lane.isBusy || lane.time > to - 1e-9) continue;
      lane.advance(to).catch((error: Error) => {
        this.isPlaying = false;
        this.onError(error.message);
      });
    }
  }
}
