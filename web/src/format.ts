// Numbers as people read them.

/** Two significant digits below 10, whole numbers above. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(size >= 20 ? 0 : 1);
  if (size >= 1) return value.toFixed(1);
  return size === 0 ? "0" : value.toFixed(2);
}

/** The numbers of an axis, with as many decimals as the one that needs most; at most three. */
export function alike(values: number[]): string[] {
  const whole = (value: number) => Math.abs(value - Math.round(value)) < 1e-6;
  const digits = [0, 1, 2].find((count) => values.every((value) => whole(value * 10 ** count))) ?? 3;
  return values.map((value) => (value === 0 ? "0" : value.toFixed(digits)));
}

export const ms = (value: number) => (value >= 1000 ? `${short(value / 1000)} s` : `${short(value)} ms`);
export const mbit = (value: number) =>
  value < 1 ? `${short(1000 * value)} kbit/s` : `${short(value)} Mbit/s`;
export const percent = (share: number) => `${short(100 * share)} %`;
export const clock = (time: number) => `${time.toFixed(1)} s`;
export const times = (factor: number) => `${short(factor)} times`;
