// The engine in WebAssembly records what the native one records, byte for byte.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { chromium } from "playwright-core";
import {
  nameOfEngine as engine,
  engineOf,
  FURTHER_KINDS,
  initSync,
  Lab,
  lane,
  more,
  start,
} from "../build/headless.js";
import { CHROMIUM, furtherScenarios, NATIVE, native, scenarios, second, wasm } from "./tools.mjs";

assert.ok(existsSync(NATIVE), `${NATIVE} is not built: make test-playground builds it`);
const all = scenarios();
/** Those that the first engine takes. */
const inFirst = all.filter(({ name }) => !FURTHER_KINDS.has(name));
const expected = new Map(all.map(({ name, text }) => [name, native(text)]));

test("there are at least twenty scenarios, and all record something", () => {
  assert.ok(all.length >= 20);
  for (const { rows } of expected.values()) assert.ok(rows.length > 5_000);
});

test("in Node, stepped and looked at all the time", async (context) => {
  initSync({ module: wasm });
  for (const { name, text } of inFirst)
    await context.test(name, () => {
      const lab = new Lab(text, true);
      for (let step = 1; step < 100; step += 1) lab.advance(0.12 * step, 0.01, 0.05);
      const summary = lab.finish();
      const { rows, summary: other } = expected.get(name);
      assert.equal(Buffer.compare(Buffer.from(lab.rows()), rows), 0, "rows");
      assert.equal(summary, other);
      lab.free();
    });
});

test("the first engine refuses what the second is for", () => {
  initSync({ module: wasm });
  const refused = all.filter(({ name }) => FURTHER_KINDS.has(name));
  assert.equal(refused.length, FURTHER_KINDS.size);
  for (const { name, text } of refused) {
    assert.throws(() => new Lab(text, true), new RegExp(`kind.*${name}`));
    assert.equal(engineOf({ ...start(), lanes: [lane("droptail"), lane(name)] }), "more");
  }
  assert.equal(engineOf(start()), "first");
});

test("the second engine records the same, QUIC besides, and parts that add up", async (context) => {
  more.initSync({ module: second });
  const further = furtherScenarios().map((one) => ({ ...one, name: `QUIC, ${one.name}` }));
  assert.equal(more.engine(), engine());
  for (const { name, text } of [...all, ...further])
    await context.test(name, () => {
      const lab = new more.Lab(text, true);
      const columns = lab.columns();
      const responses = [];
      const breakdowns = [];
      for (let step = 1; step <= 100; step += 1) {
        lab.advance(0.12 * step, 0.01, 0.05);
        responses.push(...lab.responses());
        breakdowns.push(...lab.breakdowns());
      }
      const { rows, summary } = expected.get(name) ?? native(text);
      assert.equal(lab.finish(), summary);
      assert.equal(Buffer.compare(Buffer.from(lab.rows()), rows), 0, "rows");
      assert.equal(columns.length > 0, text.includes("breakdown = true"));
      const whole = columns.indexOf("response_ns");
      const parts = columns.flatMap((column, at) =>
        column.endsWith("_ns") && !["response_ns", "loss_ns"].includes(column) ? [at] : [],
      );
      if (columns.length > 0) assert.equal(breakdowns.length / columns.length, responses.length / 3);
      for (let at = 0; at < breakdowns.length; at += columns.length) {
        const sum = parts.reduce((total, part) => total + breakdowns[at + part], 0);
        assert.equal(sum, breakdowns[at + whole], `row ${at / columns.length}`);
      }
      lab.free();
    });
});

const reason = CHROMIUM === undefined && "THERE IS NO CHROMIUM: apt-get install chromium";
test("in Chromium", { skip: reason }, async () => {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage();
    const glue = readFileSync(new URL("../pkg/aqmlab.js", import.meta.url), "utf8");
    await page.evaluate(
      async ([code, module]) => {
        const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
        globalThis.engine = await import(address);
        globalThis.engine.initSync({ module: Uint8Array.from(atob(module), (it) => it.charCodeAt(0)) });
      },
      [glue, wasm.toString("base64")],
    );
    for (const { name, text } of inFirst) {
      const [rows, summary] = await page.evaluate((scenario) => {
        const lab = new globalThis.engine.Lab(scenario, true);
        for (let step = 1; step < 40; step += 1) lab.advance(0.3 * step, 0.01, 0.05);
        const told = lab.finish();
        const bytes = lab.rows();
        let binary = "";
        for (let at = 0; at < bytes.length; at += 8192)
          binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
        lab.free();
        return [btoa(binary), told];
      }, text);
      assert.equal(
        Buffer.compare(Buffer.from(rows, "base64"), expected.get(name).rows),
        0,
        `rows of ${name}`,
      );
      assert.equal(summary, expected.get(name).summary, name);
    }
  } finally {
    await browser.close();
  }
});
