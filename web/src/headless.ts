// Lanes without a page: for tests in Node.
import { LaneData } from "./data.js";
import { Engine } from "./engine.js";
import { scenario } from "./scenario.js";
import type { State } from "./state.js";

export { engine as nameOfEngine, initSync, Lab } from "../pkg/aqmlab.js";
export * as more from "../pkg/more/aqmlab.js";
export { FURTHER_KINDS, KINDS } from "./catalog.js";
export { engineOf, fromAddress, lane, start, toAddress } from "./state.js";
export { Span } from "./stats.js";
export { STORIES } from "./stories.js";
export { Engine, scenario };

/** What each lane of a state shows in its first seconds. */
export function watch(engine: Engine, state: State, seconds: number): LaneData[] {
  return state.lanes.map((lane) => {
    const data = LaneData.of(engine.load(scenario(state, lane)));
    data.append(engine.advance(seconds, Number.POSITIVE_INFINITY));
    return data;
  });
}
