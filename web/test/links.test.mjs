// An address may come from anybody: nothing in it adds to a lane's scenario but values of known keys.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromAddress, KINDS, scenario, toAddress } from "../build/headless.js";

const EXTRA = '"\n[[traffic]]\nname = "x"\nkind = "vectors"\nfile = "/etc/passwd"\n#';
const KEY = "bottleneck.forward.discipline.limit";

/** The scenario of the first lane of an address. */
function laneOf(fields) {
  const state = fromAddress(new URLSearchParams(fields).toString(), KINDS);
  return scenario(state, state.lanes[0]);
}

const PLAIN = laneOf([["lane", "droptail"]]);

test("keys of changes are known keys", () => {
  const keys = [
    `${KEY}${EXTRA}`,
    "bottleneck.forward.discipline.nonsense",
    "topology.hosts.clients",
    "traffic.somebody.flows",
    "traffic.toString.flows",
    `traffic.web${EXTRA}.users`,
  ];
  for (const key of keys)
    assert.equal(
      laneOf([
        ["lane", "droptail"],
        ["change", `0;5;${key};10`],
      ]),
      PLAIN,
      key,
    );
  for (const key of [KEY, "bottleneck.forward.rate", "traffic.transfers-1.flows"])
    assert.match(
      laneOf([
        ["lane", "droptail"],
        ["change", `0;5;${key};10`],
      ]),
      new RegExp(`key = "${key}"\nvalue = 10\n`),
    );
});

test("a value stays one value", () => {
  const values = [
    EXTRA,
    `[1]${EXTRA}`,
    `{}\n${EXTRA}`,
    "[1], file = 2",
    "{ a = 1 }, b = 2",
    "10\n20",
    "1 # 2",
    "\u007f",
  ];
  for (const value of values) {
    const changed = laneOf([
      ["lane", "droptail"],
      ["change", `0;5;${KEY};${value}`],
    ]);
    const text = JSON.stringify(value).replace("\u007f", "\\u007f");
    assert.ok(changed.endsWith(`key = "${KEY}"\nvalue = ${text}\n`), changed);
    assert.ok(changed.startsWith(PLAIN.trimEnd()));
    const stated = laneOf([["lane", `droptail;limit=${value.replaceAll(/[=;]/g, "")}`]]);
    assert.equal(stated.split("\n").length, PLAIN.split("\n").length, stated);
  }
});

test("numbers, truth values, lists and tables stay what they are", () => {
  for (const value of ["10", "-0.5", "1e-3", "true", "[10, 18]", "[]", '{ a = "1 ms", b = 2 }'])
    assert.ok(
      laneOf([
        ["lane", "droptail"],
        ["change", `0;5;${KEY};${value}`],
      ]).endsWith(`value = ${value}\n`),
    );
});

test("an address gives back its state", () => {
  const address = new URLSearchParams([
    ["lane", "codel;target=5 ms"],
    ["change", `0;5;${KEY};10`],
  ]).toString();
  const state = fromAddress(address, KINDS);
  assert.deepEqual(fromAddress(toAddress(state), KINDS), state);
});
