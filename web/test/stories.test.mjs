// What the stories say is true of the numbers that they show.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Engine, engineOf, fromAddress, KINDS, Span, STORIES, toAddress, watch } from "../build/headless.js";
import { second, wasm } from "./tools.mjs";

const engines = {
  first: new Engine(new WebAssembly.Module(wasm)),
  more: new Engine(new WebAssembly.Module(second), "more"),
};

test("there are eight stories", () => assert.equal(STORIES.length, 8));

for (const { id, state, statements } of STORIES)
  test(`every statement of ${id} is true`, () => {
    const lanes = watch(engines[engineOf(state)], state, Math.max(...statements.map(({ to }) => to)));
    for (const { from, to, text, holds } of statements) {
      const spans = lanes.map((data) => new Span(data, from, to));
      assert.ok(holds(spans), text(spans));
      assert.doesNotMatch(text(spans), /NaN|Infinity|undefined/);
    }
  });

test("the page needs the second engine for two stories alone", () => {
  const needing = STORIES.filter(({ state }) => engineOf(state) === "more").map(({ id }) => id);
  assert.deepEqual(needing, ["why", "quic"]);
});

test("an address says all of a state", () => {
  for (const { state } of STORIES) {
    state.lanes[0].changes = [{ at: 1.25, key: "bottleneck.forward.rate", value: "2 Mbit/s" }];
    assert.deepEqual(fromAddress(`#${toAddress(state)}`, KINDS), state);
  }
});

test("an address of nonsense is the start", () => {
  const state = fromAddress("#rate=x&lane=nothing&transfers=-1,y&change=9;1;a;b&seed=", KINDS);
  assert.equal(state.rate, 10);
  assert.deepEqual(
    state.lanes.map(({ kind }) => kind),
    ["droptail", "fq-codel"],
  );
  assert.equal(state.transfers[0].control, "cubic");
});
