// Links that have names: the package's profiles, as `--link NAME` has them.
import { files, type Profile, profiles, type Value } from "virtual:links";
import { KINDS } from "./catalog.js";

/** A lane with this kind of queue has the queues that the profile of its link states. */
export const OWN = "own";

export const WAYS = ["forward", "reverse"] as const;
/** A direction: to the users, or from them. */
export type Way = (typeof WAYS)[number];

const PACKET_BYTES = 1500;
const UNITS: Readonly<Record<string, number>> = {
  "kbit/s": 1e-3,
  "Mbit/s": 1,
  "Gbit/s": 1e3,
  us: 1e-3,
  ms: 1,
  s: 1e3,
  bytes: 1 / PACKET_BYTES,
  kB: 1e3 / PACKET_BYTES,
  packets: 1,
};

/** A quantity in Mbit/s, ms or packets. */
function quantity(value: unknown): number {
  const [number, unit = ""] = String(value).split(" ");
  return Number(number) * (UNITS[unit] ?? Number.NaN);
}

/** A direction of a link, as numbers. */
interface Direction {
  /** Mbit/s; of a trace on average. */
  rate: number;
  /** Packets that the buffer holds; none if the profile does not say. */
  packets: number | undefined;
  /** The queue discipline. */
  kind: string;
}

export interface Link extends Profile {
  forward: Direction;
  reverse: Direction;
  /** The round trip of the idle path, and the part of it that is the link's delay: ms. */
  rttMs: number;
  delayMs: number;
  /** The highest rate to the users, Mbit/s. */
  peak: number;
  /** The text of the file that it names, and the file's name. */
  file: { name: string; text: string } | undefined;
}

type Table = { readonly [key: string]: Value };

function direction(table: Table): Direction {
  const discipline = table.discipline as Table & { kind: string; leaf?: Table };
  const limit = discipline.limit ?? discipline.leaf?.limit;
  return {
    rate: table.trace === undefined ? quantity(table.rate) : meanRate(files[fileOf(table) ?? ""] ?? ""),
    packets: limit === undefined ? undefined : Math.round(quantity(limit)),
    kind: discipline.kind,
  };
}

/** The name of a direction's file. */
function fileOf(table: Table): string | undefined {
  return (table.trace as { file: string } | undefined)?.file.split("/").at(-1);
}

/** The mean rate of a trace of opportunities, one a line in ms, Mbit/s: as the engine has it, whole bit/s. */
function meanRate(trace: string): number {
  const lines = trace.trim().split("\n");
  return Math.floor((1000 * PACKET_BYTES * 8 * lines.length) / Number(lines.at(-1))) / 1e6;
}

/** The highest rate of a direction, Mbit/s: of a trace over half a second, as the charts have it. */
function peak(table: Table): number {
  const spans = new Map<number, number>();
  for (const line of files[fileOf(table) ?? ""]?.trim().split("\n") ?? []) {
    const span = Math.floor(Number(line) / 500);
    spans.set(span, (spans.get(span) ?? 0) + (PACKET_BYTES * 8) / 500e3);
  }
  const changes = (table.rate_changes ?? []) as readonly Table[];
  return Math.max(direction(table).rate, ...spans.values(), ...changes.map(({ rate }) => quantity(rate)));
}

/** The text of a profile with the rates of its traces, which the engine asks for. */
function withRates({ bottleneck, text }: Profile): string {
  return WAYS.reduce((before, way) => {
    if ("rate" in bottleneck[way]) return before;
    const head = `[topology.bottleneck.${way}]\n`;
    return before.replace(head, `${head}rate = "${direction(bottleneck[way]).rate} Mbit/s"\n`);
  }, text);
}

function link(profile: Profile): Link {
  const { forward, reverse } = profile.bottleneck;
  const name = fileOf(forward) ?? fileOf(reverse);
  return {
    ...profile,
    text: withRates(profile),
    forward: direction(forward),
    reverse: direction(reverse),
    rttMs: quantity(profile.rtt),
    delayMs: forward.delay === undefined ? 0 : quantity(forward.delay),
    peak: peak(forward),
    file: name === undefined ? undefined : { name, text: files[name] ?? "" },
  };
}

export const LINKS: readonly Link[] = profiles.map(link);

export function linkNamed(name: string): Link | undefined {
  return LINKS.find((one) => one.name === name);
}

/** Why the page does not show a link whose rates may be so many Mbit/s; empty if it does. */
export function reasonAgainst({ forward, reverse }: Link, most: number): string {
  if (Math.max(forward.rate, reverse.rate) > most) return `faster than the ${most} Mbit/s of this page`;
  const missing = [forward, reverse].find(({ kind }) => !KINDS.includes(kind));
  return missing === undefined ? "" : `this page has no ${missing.kind}`;
}

/** A value in a line; of a long list the first entry. */
function said(value: Value): string {
  if (Array.isArray(value)) {
    const [first = "", ...others] = value;
    return others.length === 0 ? said(first) : `${said(first)} and ${others.length} more`;
  }
  if (typeof value !== "object") return String(value);
  const pairs = Object.entries(value).map(([key, one]) =>
    key === "kind" ? said(one) : `${key} ${said(one)}`,
  );
  return pairs.join(", ");
}

/** The numbers of a link, each with its source. */
export function numbersOf({
  rtt,
  bottleneck,
  sources,
}: Link): [key: string, value: string, source: string][] {
  return Object.entries(sources).map(([key, source]) => {
    const value = key.split(".").reduce<Value | undefined>((of, part) => (of as Table)[part], bottleneck);
    return [key, key === "rtt" ? rtt : said(value ?? ""), source];
  });
}

/** The link as a scenario has it, each direction with a discipline; none: that of the profile. */
export function bottleneck({ text }: Link, disciplines: Partial<Record<Way, string>>): string {
  return WAYS.reduce((before, way) => {
    const discipline = disciplines[way];
    const at = before.indexOf(`[topology.bottleneck.${way}]`);
    return discipline === undefined
      ? before
      : before.slice(0, at) +
          before.slice(at).replace(/^discipline = .*$/m, () => `discipline = ${discipline}`);
  }, text);
}
