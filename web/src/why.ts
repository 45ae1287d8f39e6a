// Where the time of a response went, in the words of `aqmlab why`: why.json has them from there.
import type { LaneData } from "./data.js";
import { ms, percent } from "./format.js";
import { BREAKDOWN } from "./protocol.js";
import words from "./why.json" with { type: "json" };

export interface Cause {
  /** What a response does in this time, as a sentence has it. */
  doing: string;
  /** What it means, for a reader who does not know TCP. */
  gloss: string;
}

export interface Part {
  label: string;
  cause: Cause;
  /** What happened in this time. */
  story: string;
}

/** A response and the parts of its time. */
export interface Breakdown {
  /** When it was complete, s. */
  end: number;
  nanoseconds: number;
  bytes: number;
  /** Nanoseconds of each part that took time. */
  parts: [key: string, time: number][];
  counts: Map<string, number>;
  /** The loss that cost most: from its first transmission until it was sent again. */
  loss: { nanoseconds: number; segment: string; port: string; reason: string } | null;
}

const CAUSES: Record<string, Cause> = words.causes;
const PARTS: Record<string, { label: string; cause: string; story: string }> = words.parts;
const LINK_PARTS: typeof PARTS = words.link_parts;
const COUNTS: Record<string, string[]> = words.counts;
const REASONS: Record<string, string> = words.reasons;
const SEGMENTS: Record<string, string> = words.segments;
const PLURAL: Record<string, string> = words.plural;
const AT_LINK = /^(wait|ring|transmission)_.+_(forward|reverse)$/;
/** What a response does while a timer has to find a loss, and while it stands in queues. */
export const TIMERS = CAUSES[words.timer]?.doing ?? "";
export const QUEUES = CAUSES[words.queue]?.doing ?? "";

export function partOf(key: string): Part {
  const [, what = "", direction = ""] = AT_LINK.exec(key) ?? [];
  const known = PARTS[key] ?? LINK_PARTS[what];
  const cause = CAUSES[known?.cause ?? words.other];
  if (cause === undefined) throw new Error(`${key}: is no part that has a cause`);
  const label = known?.label ?? key.replaceAll("_", " ");
  return { label: key in PARTS ? label : `${label} ${direction}`.trim(), cause, story: known?.story ?? "" };
}

/** What stands in a row of a lane's breakdowns. */
export function breakdown(data: LaneData, row: number): Breakdown {
  const { breakdowns, columns } = data;
  const named = new Map(columns.map((name, at) => [name, breakdowns.at(row, at)]));
  const value = (name: string) => named.get(name) ?? 0;
  const word = (name: string) => data.words[value(name)] ?? "";
  const isPart = (name: string) => name.endsWith("_ns") && name !== "response_ns" && name !== "loss_ns";
  return {
    end: breakdowns.at(row, BREAKDOWN.end),
    nanoseconds: value("response_ns"),
    bytes: value("response_bytes"),
    parts: [...named]
      .filter(([name, time]) => isPart(name) && time > 0)
      .map(([name, time]) => [name.slice(0, -"_ns".length), time]),
    counts: named,
    loss:
      value("loss_ns") === 0
        ? null
        : {
            nanoseconds: value("loss_ns"),
            segment: word("loss_segment"),
            port: word("loss_port"),
            reason: word("loss_reason"),
          },
  };
}

/** The row of a response that ended then, of this class, after so many seconds; none if there is none. */
export function rowOf(data: LaneData, [end, index, seconds]: [number, number, number]): number | null {
  const { breakdowns } = data;
  for (let row = breakdowns.after(BREAKDOWN.end, end - 1e-9); row < breakdowns.length; row += 1) {
    if (breakdowns.at(row, BREAKDOWN.end) > end + 1e-9) break;
    const isIt =
      breakdowns.at(row, BREAKDOWN.class) === index &&
      Math.abs(breakdowns.at(row, BREAKDOWN.response) - 1e9 * seconds) < 0.5;
    if (isIt) return row;
  }
  return null;
}

function joined(list: string[]): string {
  if (list.length < 3) return list.join(" and ");
  return `${list.slice(0, -1).join(", ")}, and ${list.at(-1)}`;
}

/** A paragraph: which parts made a response slow. */
export function paragraph({ nanoseconds, parts, loss }: Breakdown): string {
  const spent = new Map<string, { share: number; gloss: string }>();
  for (const [key, time] of parts) {
    const { doing, gloss } = partOf(key).cause;
    spent.set(doing, { share: (spent.get(doing)?.share ?? 0) + time / nanoseconds, gloss });
  }
  const ranked = [...spent].sort(([, one], [, other]) => other.share - one.share);
  const worth = ranked.filter(([, { share }]) => share >= words.worth).slice(0, words.most);
  const named = worth.length > 0 ? worth : ranked.slice(0, 1);
  const clauses = named.map(([doing, { share }], at) => {
    const why = doing === TIMERS && loss !== null ? ` (${reason(loss.reason)})` : "";
    return `${percent(share)} ${at === 0 ? "of this time " : ""}${doing}${why}`;
  });
  const gloss = named[0]?.[1].gloss ?? "";
  return `This response took ${ms(nanoseconds / 1e6)}. It spent ${joined(clauses)}. ${gloss}`.trim();
}

function reason(name: string): string {
  return REASONS[name] ?? `dropped: ${name.replaceAll("_", " ")}`;
}

/** What was lost on its path. */
export function losses({ loss, counts }: Breakdown): string {
  if (loss === null) return "No packet that this response waited for was lost.";
  const what = SEGMENTS[loss.segment] ?? "a packet";
  const more = counts.get("losses") ?? 0;
  const all = more > 1 ? ` The response waited for ${more} lost segments in turn.` : "";
  const after = ms(loss.nanoseconds / 1e6);
  return `The costliest loss: ${what} was ${reason(loss.reason)}${loss.port === "" ? "" : `, at ${loss.port}`}. It was sent again ${after} after its first transmission.${all}`;
}

/** How many trips or expiries are behind a part; nothing if they are not counted. */
export function counted(key: string, counts: Map<string, number>): string {
  const [column = "", noun = ""] = COUNTS[key] ?? [];
  const count = counts.get(column) ?? 0;
  return count === 0 ? "" : `${count} ${count === 1 ? noun : (PLURAL[noun] ?? noun)}`;
}
