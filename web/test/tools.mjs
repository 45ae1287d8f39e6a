// What the tests share: the engine in Node, the native one, a browser.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KINDS, lane, scenario, start } from "../build/headless.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

export const PAGE = `file://${root}site/playground/index.html`;
export const wasm = readFileSync(new URL("../pkg/aqmlab_bg.wasm", import.meta.url));
export const second = readFileSync(new URL("../pkg/more/aqmlab_bg.wasm", import.meta.url));
export const NATIVE = process.env.AQMLAB_NATIVE ?? `${root}target/quick/examples/native`;
export const AQMLAB = process.env.AQMLAB ?? `${root}.venv/bin/aqmlab`;
export const CHROMIUM = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser"].find(
  (path) => path !== undefined && existsSync(path),
);

const CONTROLS = ["reno", "cubic", "prague", "dctcp", "bbr1", "bbr3", "vegas"];

/** A scenario for each discipline; controls, marks, rates and changes take turns. */
export function scenarios() {
  return KINDS.map((kind, index) => {
    const state = start();
    const [first, second] = state.transfers;
    Object.assign(first, { flows: 3, control: CONTROLS[index % CONTROLS.length], ecn: index % 2 === 0 });
    Object.assign(second, { flows: index % 3, control: "cubic", rtt: 15 + index });
    Object.assign(state, { rate: 4 + index, buffer: 150, web: 60, seed: index + 1, lanes: [lane(kind)] });
    Object.assign(state, {
      video: index % 4,
      delay: 2 * (index % 3),
      up: index % 5 === 0 ? state.rate : 1000,
    });
    second.up = index % 5 === 0;
    if (index % 2 === 1)
      state.lanes[0].changes.push({ at: 5, key: "bottleneck.forward.rate", value: `${2 + index} Mbit/s` });
    return { name: kind, text: scenario(state, state.lanes[0], 12) };
  });
}

/** Scenarios for the second engine alone: QUIC with each control beside TCP, and the parts of times. */
export function furtherScenarios() {
  return CONTROLS.map((control, index) => {
    const state = start();
    const [first, other] = state.transfers;
    Object.assign(first, { flows: 2, control, quic: true, ecn: index % 2 === 0 });
    Object.assign(other, { flows: 2, control: "cubic", rtt: 30 });
    const one = lane(["droptail", "fq-codel", "red"][index % 3]);
    Object.assign(state, { rate: 6 + index, buffer: 100, web: 60, why: true, seed: index + 1, lanes: [one] });
    return { name: control, text: scenario(state, one, 12) };
  });
}

/** What the native engine records of a scenario that names a file or none, and its summary. */
export function native(text, beside) {
  const folder = mkdtempSync(join(tmpdir(), "playground-"));
  const [file, out] = [join(folder, "scenario.toml"), join(folder, "run")];
  writeFileSync(file, text);
  const more = beside === undefined ? [] : [join(folder, "beside")];
  for (const path of more) writeFileSync(path, beside);
  execFileSync(NATIVE, [file, out, ...more]);
  return { rows: readFileSync(`${out}.rows`), summary: readFileSync(`${out}.json`, "utf8") };
}
