// A lane's scenario: the same text for the engine in the page and for `aqmlab run`.
import { parametersOf, shortName, starting } from "./catalog.js";
import { bottleneck, linkNamed, OWN, WAYS, type Way } from "./links.js";
import type { Named } from "./protocol.js";
import {
  bufferPackets,
  type Control,
  isLimitedUp,
  kindOf,
  type Lane,
  rateOf,
  type State,
  type Transfers,
} from "./state.js";

/** The page's runs end after so many simulated seconds. */
export const LONGEST = 1800;

/** Names of the classes of traffic, in the order of the scenario. */
export const CLASSES = {
  "transfers-1": "Transfers 1",
  "transfers-2": "Transfers 2",
  web: "Web",
  call: "Call",
  video: "Video",
};

/** The class of each group of transfers. */
export const GROUPS = ["transfers-1", "transfers-2"] as const;

const NUMBER = String.raw`(?:true|false|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)`;
const SCALAR = String.raw`(?:${NUMBER}|"[^"\\\u0000-\u001f\u007f]*")`;
const PAIR = String.raw`[\w-]+ *= *${SCALAR}`;
/** What is no text: a number, a truth value, and lists and tables of such values and of texts. */
const LITERAL = new RegExp(
  String.raw`^(?:${NUMBER}|\[ *(?:${SCALAR}(?: *, *${SCALAR})*)? *\]|\{ *(?:${PAIR}(?: *, *${PAIR})*)? *\})$`,
  "i",
);

/** A value as TOML has it. It may come from an address: whatever it holds, it is one value. */
function toml(value: string): string {
  return LITERAL.test(value) ? value : JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}

/** Whether a key is one that the page can change in a lane: an address may name any. */
function isChangeable(lane: Lane, key: string): boolean {
  const link = /^bottleneck\.(?:forward|reverse)\.(?:rate|delay|discipline\.(\w+))$/.exec(key);
  if (link !== null) {
    return (
      link[1] === undefined ||
      link[1] === "limit" ||
      parametersOf(lane.kind).some(({ name }) => name === link[1])
    );
  }
  const traffic = /^traffic\.([\w-]+)\.(?:flows|users|calls|viewers)$/.exec(key);
  return traffic !== null && Object.hasOwn(CLASSES, traffic[1] ?? "");
}

/** All parameters of a lane's discipline that the scenario states, of a direction. */
export function stated(state: State, lane: Lane, way: Way = "forward"): Record<string, string> {
  return { ...starting(lane.kind, bufferPackets(state, way), rateOf(state, way)), ...lane.parameters };
}

/** The way from the users: never full, or with the lane's discipline and a buffer as long in time. */
function wayBack(state: State, lane: Lane): string {
  const kind = isLimitedUp(state)
    ? discipline(state, lane, "reverse")
    : '{ kind = "droptail", limit = "10000 packets" }';
  const never = isLimitedUp(state) ? "" : "# The way back is never the bottleneck.\n";
  return `${never}[topology.bottleneck.reverse]\nrate = "${state.up} Mbit/s"\ndiscipline = ${kind}`;
}

function discipline(state: State, lane: Lane, way: Way): string {
  const known = new Set(parametersOf(lane.kind).map(({ name }) => name));
  const pairs = Object.entries(stated(state, lane, way)).filter(([name]) => known.has(name));
  const fields = [["kind", lane.kind], ...pairs].map(([name, value]) => `${name} = ${toml(value ?? "")}`);
  return `{ ${fields.join(", ")} }`;
}

/** The bottleneck: that of the link's profile with the lane's queues, or what the sliders say. */
function link(state: State, lane: Lane): string {
  const named = linkNamed(state.link);
  if (named !== undefined) {
    const queues = lane.kind === OWN ? [] : WAYS.map((way) => [way, discipline(state, lane, way)]);
    return bottleneck(named, Object.fromEntries(queues));
  }
  return `[topology.bottleneck]
rate = "${state.rate} Mbit/s"
discipline = ${discipline(state, lane, "forward")}

[topology.bottleneck.forward]
delay = "${state.delay} ms"

${wayBack(state, lane)}`;
}

/** Controls that count marks: what they need of their stack. */
const COUNTING: Partial<Record<Control, string[]>> = {
  prague: ["ecn = true", 'ect = "ect1"', 'ect_on = "all-data"', 'ecn_echo = "accurate"'],
  dctcp: ["ecn = true", 'ect_on = "all-data"', 'ecn_echo = "each-change"'],
};

/** The transport of a group of transfers. Its QUIC marks datagrams as its TCP marks segments. */
function transport({ control, ecn, quic }: Transfers): string {
  if (quic)
    return `transport = "quic"\nquic = { congestion_control = "${control}", ecn = ${ecn || control in COUNTING} }`;
  const marks = COUNTING[control] ?? (ecn ? ["ecn = true"] : []);
  return `tcp = { ${[`profile = "linux"`, `congestion_control = "${control}"`, ...marks].join(", ")} }`;
}

function classes(state: State): string[] {
  const named = linkNamed(state.link);
  // The link's delay is part of a round trip.
  const constant = (rtt: number) =>
    `rtt = { kind = "constant", rtt = "${named?.rtt ?? `${rtt + state.delay} ms`}" }`;
  const parts = state.transfers.flatMap((group, index) =>
    group.flows === 0
      ? []
      : [
          `name = "${GROUPS[index]}"\nkind = "bulk"\nflows = ${group.flows}\nstart_within = "2 s"\n` +
            `${group.up ? 'direction = "reverse"\n' : ""}${transport(group)}\n${constant(group.rtt)}`,
        ],
  );
  if (state.web > 0)
    parts.push(
      `name = "web"\nkind = "unc-web"\nusers = ${state.web}\ntcp = "linux"\n${constant(state.webRtt)}`,
    );
  if (state.call) parts.push(`name = "call"\nkind = "voip"\ncalls = 1\n${constant(40)}`);
  if (state.video > 0)
    parts.push(
      `name = "video"\nkind = "abr-video"\nviewers = ${state.video}\ntcp = "linux"\n${constant(40)}`,
    );
  return parts.map((part) => `[[traffic]]\n${part}\n`);
}

/** The scenario of a lane, up to `end` seconds, with its changes. */
export function scenario(state: State, lane: Lane, end: number = LONGEST): string {
  const changes = lane.changes
    .filter(({ at, key }) => at < end && isChangeable(lane, key))
    .map(({ at, key, value }) => `[[changes]]\nat = "${at} s"\nkey = ${toml(key)}\nvalue = ${toml(value)}\n`);
  const at = state.link || `${state.rate} Mbit/s`;
  return `title = "${shortName(kindOf(state, lane))} at ${at}, from the playground"
seed = ${state.seed}

[measure]
warm_up = "0 s"
duration = "${end} s"
${state.why ? "breakdown = true\n" : ""}
[topology]
kind = "dumbbell"

${link(state, lane)}

${[...classes(state), ...changes].join("\n")}`;
}

/** The scenario of a lane with the file that it names. */
export function named(state: State, lane: Lane, end: number = LONGEST): Named {
  return { scenario: scenario(state, lane, end), file: linkNamed(state.link)?.file?.text };
}

/** The lanes' names: their disciplines, and of those that occur twice what tells them apart. */
export function laneNames(state: State): string[] {
  return state.lanes.map((lane) => {
    const alike = state.lanes.filter(({ kind }) => kind === lane.kind).map((other) => stated(state, other));
    const own = stated(state, lane);
    const keys = Object.keys(own).filter((key) => alike.some((other) => other[key] !== own[key]));
    const apart = keys
      .slice(0, 2)
      .map((key) => `${key.replaceAll("_", " ")} ${own[key]?.replace(" packets", "")}`);
    const name = `${shortName(kindOf(state, lane))}${lane.kind === OWN ? " of the link" : ""}`;
    return apart.length === 0 ? name : `${name}, ${apart.join(", ")}`;
  });
}
