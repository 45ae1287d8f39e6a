// A world in its engine, with copies of its memory to go back to. It runs in a worker, and in Node.
import * as first from "../pkg/aqmlab.js";
import * as more from "../pkg/more/aqmlab.js";
import {
  type EngineKind,
  FLOW_STEP,
  type Frame,
  type Pair,
  type Ready,
  STEP,
  type World,
} from "./protocol.js";

/** Copies that are kept at most, and simulated seconds between two of them at first. */
const MOST_COPIES = 16;
const FIRST_PERIOD = 1;
/** Simulated seconds between two looks at the clock, and at whether a copy is due. */
const STRETCH = 0.1;

const EMPTY = new Float64Array(0);

/** The JavaScript of both engines: the second can do what the first can, QUIC and breakdowns. */
type Lab = first.Lab | more.Lab;

function pointer(lab: Lab): number {
  return (lab as unknown as { __wbg_ptr: number }).__wbg_ptr;
}

/** The same moment again: binary fractions of a second differ in their last digit. */
const NEARLY = 1e-9;

export class Engine {
  readonly #glue: typeof first | typeof more;
  readonly #wasm: first.InitOutput;
  #lab: Lab | null = null;
  #ready: Ready = { classes: [], changeable: [], end: 0, columns: [] };
  #copies: World[] = [];
  #period = FIRST_PERIOD;
  #beforeChange: World | null = null;

  constructor(module: WebAssembly.Module, kind: EngineKind = "first") {
    this.#glue = kind === "more" ? more : first;
    this.#wasm = this.#glue.initSync({ module });
  }

  get name(): string {
    return this.#glue.engine();
  }

  /** A new world; `file` is the text of the file that the scenario names, if any. */
  load(scenario: string, file?: string): Ready {
    this.#lab?.free();
    this.#lab = null;
    const lab = new this.#glue.Lab(scenario, false, file);
    this.#lab = lab;
    this.#ready = {
      classes: lab.classes(),
      changeable: lab.changeable(),
      end: lab.end(),
      columns: "columns" in lab ? lab.columns() : [],
    };
    this.#begin();
    return this.#ready;
  }

  #begin(): void {
    this.#copies = [this.#copy()];
    this.#period = FIRST_PERIOD;
    this.#beforeChange = null;
  }

  advance(to: number, budget: number): Frame {
    const lab = this.#running();
    const begun = performance.now();
    const samples: Float64Array[] = [];
    const flows: Float64Array[] = [];
    const qualities: Float64Array[] = [];
    let time = lab.now();
    while (time < to - NEARLY) {
      time = Math.min(to, time + STRETCH);
      lab.advance(time, STEP, FLOW_STEP);
      samples.push(lab.samples());
      flows.push(lab.flows());
      qualities.push(lab.qualities());
      this.#copyIfDue();
      if (performance.now() - begun > budget) break;
    }
    return {
      time: lab.now(),
      samples: joined(samples),
      flows: joined(flows),
      responses: lab.responses(),
      qualities: joined(qualities),
      breakdowns: "breakdowns" in lab ? lab.breakdowns() : EMPTY,
      words: "words" in lab ? lab.words() : [],
    };
  }

  /** Gives keys other values: one change, or none if a value is wrong. */
  set(pairs: Pair[]): void {
    const lab = this.#running();
    const before = this.#copy();
    try {
      for (const [key, value] of pairs) lab.set(key, value);
    } catch (error) {
      this.#restore(before);
      throw error;
    }
    this.#beforeChange = before;
  }

  /** Goes back to `to`: to the last copy before it, and on from there. */
  back(to: number): { time: number } {
    this.#copies = this.#copies.filter((copy) => copy.time <= to + NEARLY);
    const copy = this.#copies.at(-1);
    if (copy === undefined) throw new Error("there is no copy to go back to");
    this.#restore(copy);
    if (this.#beforeChange !== null && this.#beforeChange.time > to) this.#beforeChange = null;
    this.#running().advance(to, STEP, FLOW_STEP);
    const lab = this.#running();
    lab.responses();
    if ("breakdowns" in lab) lab.breakdowns();
    return { time: this.#running().now() };
  }

  fork(): World {
    if (this.#beforeChange === null) throw new Error("nothing has changed");
    return this.#beforeChange;
  }

  adopt(world: World): Ready {
    this.#restore(world);
    this.#ready = world.ready;
    // How the glue's class is made for a world that another engine of this kind began.
    this.#lab = Object.assign(Object.create(this.#glue.Lab.prototype) as Lab, { __wbg_ptr: world.lab });
    this.#begin();
    return this.#ready;
  }

  /** Runs a scenario to its end. The world under way is put aside meanwhile. */
  report(scenario: string, file?: string): string {
    const aside = this.#lab === null ? null : this.#copy();
    const lab = new this.#glue.Lab(scenario, false, file);
    try {
      return lab.finish();
    } finally {
      lab.free();
      if (aside !== null) this.#restore(aside);
    }
  }

  #running(): Lab {
    if (this.#lab === null) throw new Error("there is no simulation");
    return this.#lab;
  }

  #copy(): World {
    const lab = this.#running();
    return {
      time: lab.now(),
      memory: this.#wasm.memory.buffer.slice(0) as ArrayBuffer,
      lab: pointer(lab),
      ready: this.#ready,
    };
  }

  #copyIfDue(): void {
    const last = this.#copies.at(-1)?.time ?? 0;
    if (this.#running().now() < last + this.#period) return;
    this.#copies.push(this.#copy());
    if (this.#copies.length > MOST_COPIES) {
      this.#copies = this.#copies.filter((_, index) => index % 2 === 0);
      this.#period *= 2;
    }
  }

  #restore(world: World): void {
    const memory = this.#wasm.memory;
    const missing = world.memory.byteLength - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / 65536));
    new Uint8Array(memory.buffer).set(new Uint8Array(world.memory));
  }
}

function joined(parts: Float64Array[]): Float64Array {
  if (parts.length < 2) return parts[0] ?? EMPTY;
  const all = new Float64Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
