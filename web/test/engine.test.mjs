// Going back, and going on without a change, are exact.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Engine, scenario, start } from "../build/headless.js";
import { wasm } from "./tools.mjs";

const engine = new Engine(new WebAssembly.Module(wasm));
const state = start();
const text = scenario(state, state.lanes[1]);
const to = (time) => engine.advance(time, Number.POSITIVE_INFINITY);

test("what comes after going back is what came before", () => {
  engine.load(text);
  to(7.3);
  const first = to(20);
  assert.equal(engine.back(7.3).time, 7.3);
  const again = to(20);
  assert.deepEqual(again, first);
});

test("a world goes on from a copy without its last change", () => {
  engine.load(text);
  to(5);
  const without = to(15);
  engine.back(5);
  engine.set([["bottleneck.forward.rate", "2 Mbit/s"]]);
  assert.notDeepEqual(to(15), without);
  const world = engine.fork();
  assert.equal(world.time, 5);
  engine.adopt(world);
  assert.deepEqual(to(15), without);
});

test("a report leaves the world as it is", () => {
  engine.load(text);
  to(3);
  const summary = JSON.parse(engine.report(scenario(state, state.lanes[0], 4)));
  assert.ok(summary.links.bottleneck.forward.utilization > 0);
  const after = to(6);
  engine.load(text);
  to(3);
  assert.deepEqual(to(6), after);
});

test("what is wrong is said", () => {
  assert.throws(() => engine.load(text.replace('rate = "10 Mbit/s"', 'rate = "10 apples"')), /rate/);
  engine.load(text);
  const wrong = [
    ["bottleneck.forward.delay", "5 ms"],
    ["bottleneck.forward.rate", "apples"],
  ];
  assert.throws(() => engine.set(wrong), /bottleneck.forward.rate/);
  // None of them is made.
  const untouched = to(8);
  engine.load(text);
  assert.deepEqual(to(8), untouched);
});
