// The disciplines and their parameters, as the engine's schema has them (catalog.json is generated).
import catalog from "./catalog.json";

export interface Parameter {
  name: string;
  description: string;
  /** What may stand there, in words. */
  type: string;
  required: boolean;
  default?: unknown;
  words?: { name: string; description: string }[];
}

export interface Discipline {
  title: string;
  purpose: string;
  parameters: Parameter[];
}

export const DISCIPLINES: Readonly<Record<string, Discipline>> = catalog as Record<string, Discipline>;
export const KINDS: readonly string[] = Object.keys(DISCIPLINES);
/** The disciplines that only the second engine has. */
export const FURTHER_KINDS: ReadonlySet<string> = new Set(["policer", "shaper"]);

/** Short names of the best known ones; others are called by their kind. */
const NAMES: Readonly<Record<string, string>> = {
  droptail: "Drop-tail",
  codel: "CoDel",
  "fq-codel": "FQ-CoDel",
  "fq-pie": "FQ-PIE",
  dualpi2: "DualPI2",
  cake: "CAKE",
  "rio-ps": "RIO-PS",
  "red-pd": "RED-PD",
  "ared-feng": "ARED (Feng)",
  choke: "CHOKe",
  blue: "BLUE",
  step: "Step marking",
  "l4s-marking": "L4S marking",
  bernoulli: "Bernoulli",
  policer: "Policer",
  shaper: "Shaper",
};

export function shortName(kind: string): string {
  return NAMES[kind] ?? kind.toUpperCase();
}

export function parametersOf(kind: string): Parameter[] {
  return DISCIPLINES[kind]?.parameters ?? [];
}

/** The bounds in "number from 0 up to 1", "whole number above 0": what a form field wants. */
export function bounds({ type }: Parameter): { min?: number; max?: number; whole: boolean } | null {
  if (!/^(whole )?number/.test(type)) return null;
  const at = (pattern: RegExp) => {
    const found = pattern.exec(type)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const [min, max] = [at(/(?:from|above) (\S+)/), at(/(?:up to|below) (\S+)/)];
  return {
    whole: type.startsWith("whole"),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
  };
}

/**
 * What a discipline needs that has no default, for a buffer of so many packets and a link of so many
 * Mbit/s: thresholds at a sixth and at half of the buffer, which is where the textbooks begin; nine
 * tenths of the link, and a tenth of a second of them at once.
 */
export function starting(kind: string, buffer: number, rate: number): Record<string, string> {
  const part = (share: number, least: number) => `${Math.max(least, Math.round(buffer * share))} packets`;
  const shares: Record<string, number> = {
    limit: 1,
    min_th: 1 / 6,
    max_th: 1 / 2,
    threshold: 1 / 6,
    q_ref: 1 / 6,
  };
  // A buffer of few packets has room for both thresholds.
  const least: Record<string, number> = { max_th: 3 };
  const others: Record<string, string> = {
    rate: `${Math.round(900 * rate)} kbit/s`,
    burst: `${Math.max(3_000, Math.round(11_250 * rate))} bytes`,
    leaf: "fq-codel",
  };
  const needed = parametersOf(kind).filter(({ name, required }) => required || name === "limit");
  return Object.fromEntries(
    needed.map(({ name }) => [name, others[name] ?? part(shares[name] ?? 1 / 4, least[name] ?? 2)]),
  );
}
