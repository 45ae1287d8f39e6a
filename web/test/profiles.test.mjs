// Links that have names: what the page simulates is what `--link NAME` gives.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  chooseLink,
  Engine,
  engineOf,
  fromAddress,
  KINDS,
  LINKS,
  lane,
  linkNamed,
  more,
  named,
  numbersOf,
  start,
  toAddress,
  unfit,
} from "../build/headless.js";
import { AQMLAB, native, second, wasm } from "./tools.mjs";

const engines = {
  first: new Engine(new WebAssembly.Module(wasm)),
  more: new Engine(new WebAssembly.Module(second), "more"),
};
const SHOWN = LINKS.filter((link) => unfit(link) === "");

/** The start over a link, as the form chooses it. */
function over(name) {
  const state = start();
  chooseLink(state, name);
  return state;
}

test("every link of the package is there, and one is too fast", () => {
  const folder = new URL("../../python/aqmlab/scenario/links/", import.meta.url);
  const files = readdirSync(folder).filter((file) => file.endsWith(".toml"));
  assert.deepEqual(
    LINKS.map(({ name }) => `${name}.toml`),
    files.sort(),
  );
  const refused = LINKS.filter((link) => unfit(link) !== "");
  assert.deepEqual(
    refused.map((link) => [link.name, unfit(link)]),
    [["data-centre", "faster than the 200 Mbit/s of this page"]],
  );
  assert.match(unfit({ ...linkNamed("dsl"), forward: { rate: 1, kind: "cake-mq" } }), /no cake-mq/);
});

test("every number of a link has a value and a source", () => {
  for (const link of LINKS) {
    assert.ok(link.title.length > 5);
    const numbers = numbersOf(link);
    assert.equal(numbers.length, Object.keys(link.sources).length);
    for (const [key, value, source] of numbers) {
      assert.match(value, /\d/, `${link.name}: ${key}`);
      assert.ok(source.length > 5);
    }
    assert.ok(link.peak >= link.forward.rate);
    const sizes = [link.rttMs, link.delayMs, link.forward.rate, link.reverse.rate];
    for (const size of sizes) assert.ok(Number.isFinite(size), link.name);
    for (const { packets } of [link.forward, link.reverse])
      assert.ok(link.name === "sqm" ? packets === undefined : packets >= 4, link.name);
  }
});

for (const { name } of SHOWN)
  test(`lanes over ${name} run, each with its own queue`, () => {
    const state = over(name);
    const kinds = state.lanes.map(({ kind }) => kind);
    assert.deepEqual(kinds, ["own", "fq-codel"]);
    for (const one of state.lanes) {
      const { scenario, file } = named(state, one);
      const engine = engines[engineOf(state)];
      assert.deepEqual(engine.load(scenario, file).classes, ["transfers-1", "web", "call"]);
      const { samples } = engine.advance(5, Number.POSITIVE_INFINITY);
      assert.ok(samples.at(-3) > 5_000, `${one.kind}: ${samples.at(-3)} bytes`);
    }
  });

test("RED has two thresholds in the smallest buffer", () => {
  for (const kind of ["red", "ared-feng", "red-pd"]) {
    const { scenario, file } = named(over("dial-up"), lane(kind));
    assert.ok(engines.first.load(scenario, file).classes.length > 0);
  }
});

test("what a link gives at most is known", () => {
  assert.equal(linkNamed("leo").peak, 120);
  assert.equal(linkNamed("dsl").peak, 16);
  const { peak, forward } = linkNamed("cellular");
  assert.ok(peak > 1.2 * forward.rate && peak < 4 * forward.rate, `${peak} Mbit/s`);
});

test("policed and shaped links take the second engine, others the first", () => {
  const further = SHOWN.filter(({ name }) => engineOf(over(name)) === "more");
  assert.deepEqual(
    further.map(({ name }) => name),
    ["policed", "shaped"],
  );
});

test("a trace is that of the native engine", () => {
  const state = over("home-wifi");
  const { scenario, file } = named(state, state.lanes[1], 8);
  more.initSync({ module: second });
  const lab = new more.Lab(scenario, true, file);
  for (let step = 1; step <= 80; step += 1) lab.advance(0.1 * step, 0.01, 0.05);
  const { rows, summary } = native(scenario, file);
  assert.equal(lab.finish(), summary);
  assert.equal(Buffer.compare(Buffer.from(lab.rows()), rows), 0, "rows");
  assert.throws(() => new more.Lab(scenario, true), /no files here/);
});

test("a saved scenario has the link of --link already", {
  skip: !existsSync(AQMLAB) && `no ${AQMLAB}`,
}, () => {
  for (const name of ["cellular", "leo", "policed", "sqm"]) {
    const folder = mkdtempSync(join(tmpdir(), "playground-"));
    const state = over(name);
    writeFileSync(join(folder, "lane.toml"), named(state, state.lanes[0], 3).scenario);
    const beside = linkNamed(name).file;
    if (beside !== undefined) writeFileSync(join(folder, beside.name), beside.text);
    const [saved, linked] = [[], ["--link", name]].map((options, index) => {
      const out = join(folder, String(index));
      execFileSync(AQMLAB, ["run", join(folder, "lane.toml"), ...options, "--out", out], { stdio: "ignore" });
      return JSON.parse(readFileSync(join(out, "summary.json"), "utf8"));
    });
    assert.ok(saved.links.bottleneck.forward.utilization > 0);
    assert.deepEqual(linked.links, saved.links, name);
    assert.deepEqual(linked.flows, saved.flows, name);
  }
});

test("an address says the link, and which queues are its own", () => {
  for (const { name } of SHOWN) {
    const state = over(name);
    state.lanes.push(lane("codel", { target: "2 ms" }));
    assert.deepEqual(fromAddress(toAddress(state), KINDS), state);
    assert.deepEqual(fromAddress(`#link=${name}`, KINDS), over(name));
  }
});

test("an address of an unknown link, or of one that is too fast, is the start", () => {
  for (const name of ["nowhere", "data-centre", 'dsl"\nseed = 2'])
    assert.deepEqual(fromAddress(new URLSearchParams({ link: name }).toString(), KINDS), start());
  const lanes = fromAddress("#link=nowhere&lane=own&lane=codel", KINDS).lanes;
  assert.deepEqual(
    lanes.map(({ kind }) => kind),
    ["codel"],
  );
});

test("sliders begin at the numbers of the link that was chosen before", () => {
  const state = over("leo");
  chooseLink(state, "");
  const { link, rate, up, delay, buffer, webRtt } = state;
  assert.deepEqual(
    { link, rate, up, delay, webRtt },
    { link: "", rate: 87.25, up: 13.54, delay: 20, webRtt: 24 },
  );
  assert.ok(Math.abs(buffer - 100) < 0.1, `${buffer} ms`);
  assert.equal(state.transfers[0].rtt, 24);
  assert.deepEqual(
    state.lanes.map(({ kind }) => kind),
    ["droptail", "fq-codel"],
  );
  const slow = over("dial-up");
  chooseLink(slow, "");
  assert.deepEqual([slow.rate, slow.up], [0.5, 0.1], "the sliders' lowest");
  assert.deepEqual(fromAddress(toAddress(slow), KINDS), slow);
});
