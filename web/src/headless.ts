// Lanes without a page: for tests in Node.
import { LaneData } from "./data.js";
import { Engine } from "./engine.js";
import type { Ready } from "./protocol.js";
import { named, scenario } from "./scenario.js";
import type { Lane, State } from "./state.js";

export { engine as nameOfEngine, initSync, Lab } from "../pkg/aqmlab.js";
export * as more from "../pkg/more/aqmlab.js";
export { FURTHER_KINDS, KINDS } from "./catalog.js";
export { LINKS, linkNamed, numbersOf, OWN } from "./links.js";
export { chooseLink, engineOf, fromAddress, lane, start, toAddress, unfit } from "./state.js";
export { Span } from "./stats.js";
export { STORIES } from "./stories.js";
export { Engine, named, scenario };

/** A world of a lane at time 0. */
function loaded(engine: Engine, state: State, lane: Lane): Ready {
  const { scenario, file } = named(state, lane);
  return engine.load(scenario, file);
}

/** What each lane of a state shows in its first seconds. */
export function watch(engine: Engine, state: State, seconds: number): LaneData[] {
  return state.lanes.map((lane) => {
    const data = LaneData.of(loaded(engine, state, lane));
    data.append(engine.advance(seconds, Number.POSITIVE_INFINITY));
    return data;
  });
}
