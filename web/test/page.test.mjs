// The page in a browser, opened from its folder: what people do with it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { STORIES, start, toAddress } from "../build/headless.js";
import { AQMLAB, CHROMIUM, native, PAGE } from "./tools.mjs";

const skip = CHROMIUM === undefined && "THERE IS NO CHROMIUM: apt-get install chromium";
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
let browser;

before(async () => {
  if (!skip) browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
});
after(() => browser?.close());

/** Opens the page; what it says to the console, and whatever it asks of others, is an error. */
async function open(context, { hash = `#${toAddress(start())}`, ...options } = {}) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 }, ...options });
  const told = [];
  page.on("console", (message) => told.push(message.text()));
  page.on("pageerror", (error) => told.push(error.message));
  page.on("request", (request) => {
    if (!/^(file|blob|data):/.test(request.url())) told.push(request.url());
  });
  await page.goto(PAGE + hash);
  await page.waitForFunction(() => globalThis.playground?.player.time > 0.3);
  context.after(async () => {
    assert.deepEqual(told, []);
    await page.close();
  });
  return page;
}

const time = (page) => page.evaluate(() => globalThis.playground.player.time);
const pause = (page) => page.evaluate(() => globalThis.playground.play(false));
const reach = (page, seconds) =>
  page.waitForFunction((to) => globalThis.playground.player.time >= to, seconds, { timeout: 120_000 });
/** All samples of all lanes up to a time, as text. */
const samples = (page, to) =>
  page.evaluate((until) => {
    const { lanes } = globalThis.playground.player;
    return lanes.map(({ data }) => {
      const [, behind] = data.span(0, until);
      return Array.from({ length: behind }, (_, row) => [data.links.at(row, 1), data.links.at(row, 7)]).join(
        " ",
      );
    });
  }, to);

async function accessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  assert.deepEqual(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(" ")}`),
    [],
  );
}

for (const colorScheme of ["light", "dark"])
  for (const width of [390, 1400, 2560])
    test(`axe finds nothing, and nothing is cut off: ${colorScheme}, ${width} px`, {
      skip,
    }, async (context) => {
      const page = await open(context, { colorScheme, viewport: { width, height: 900 } });
      await page.click('[data-story="bufferbloat"]');
      await reach(page, 1);
      await pause(page);
      await accessible(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `the page is ${wide} px wide`);
    });

test("a slider that is dragged changes the running lanes", { skip }, async (context) => {
  const page = await open(context);
  await reach(page, 2);
  const slider = page.getByLabel("Rate", { exact: true });
  const box = await slider.boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
  await page.mouse.down();
  // Few steps: a busy machine may rest between them, which would end the gesture.
  await page.mouse.move(box.x + box.width * 0.3, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
  // Each lane has a worker of its own, which takes the change when it gets to it.
  await page.waitForFunction(() =>
    globalThis.playground.begun.lanes.every((lane) => lane.changes.length > 0),
  );
  const changes = await page.evaluate(() =>
    globalThis.playground.begun.lanes.map((lane) => lane.changes.length),
  );
  assert.deepEqual(changes, [1, 1], "a gesture is one change");
  assert.ok((await time(page)) >= 2, "it went on");
  await pause(page);
  assert.match(await page.evaluate(() => location.hash), /change=0%3B/);
  // The same moment without this change, as one more lane.
  await page.getByRole("button", { name: "Compare without the last change" }).first().click();
  await page.waitForFunction(() => globalThis.playground.begun.lanes.length === 3);
  const [a, , c] = await page.evaluate(() =>
    globalThis.playground.begun.lanes.map(({ changes }) => changes.length),
  );
  assert.ok(c < a, `${c} of ${a} changes`);
});

test("the keyboard moves sliders and plays", { skip }, async (context) => {
  const page = await open(context);
  await pause(page);
  const before = await page.evaluate(() => globalThis.playground.state.rate);
  await page.getByLabel("Rate", { exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((rate) => globalThis.playground.state.rate > rate, before);
  await page.getByRole("button", { name: "Play" }).focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => globalThis.playground.player.isPlaying), true);
});

test("the round trip changes while it runs", { skip }, async (context) => {
  const page = await open(context);
  await reach(page, 1);
  await page.getByLabel("Delay of the link", { exact: true }).focus();
  for (let step = 0; step < 20; step += 1) await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => globalThis.playground.begun.lanes[1].changes.length > 0);
  const { key, value, at } = await page.evaluate(() => globalThis.playground.begun.lanes[1].changes[0]);
  assert.deepEqual([key, value, at > 0.9], ["bottleneck.forward.delay", "60 ms", true]);
});

test("uploads fill the way back, which can be looked at, and a call is rated", { skip }, async (context) => {
  const hash =
    "#rate=20&up=2&buffer=500&speed=0&transfers=2,cubic,40,up&web=0&call=1&video=1&lane=droptail&lane=codel";
  const page = await open(context, { hash });
  await reach(page, 20);
  await pause(page);
  // Means of a fixed span: where a lane stands when it is paused depends on the machine.
  const gauge = () =>
    page.evaluate(() =>
      globalThis.playground.player.lanes.map(({ data }) => {
        const [first, behind] = data.span(5, 20);
        let sum = 0;
        for (let row = first; row < behind; row += 1) sum += data.link(row, 1);
        return sum / (behind - first);
      }),
    );
  const [down] = await gauge();
  await page.selectOption("#direction", "up");
  const [up, cured] = await gauge();
  assert.ok(down < 0.05 && up > 0.1 && cured < 0.05, `${down} ${up} ${cured} s`);
  assert.match(await page.textContent("#from"), /Users/);
  assert.match(await page.evaluate(() => location.hash), /show=up/);
  const row = page.locator("#numbers tr", { hasText: "opinion score" });
  await page.waitForFunction(() =>
    /score, 1 to 4.5\d\.\d/.test(document.querySelector("#numbers").textContent),
  );
  assert.match(await row.textContent(), /[1-4]\.\d/);
  assert.match(await page.locator("#numbers tr", { hasText: "Video: bit rate" }).textContent(), /bit\/s/);
});

test("another discipline begins with the same seed", { skip }, async (context) => {
  const page = await open(context);
  await page.locator('[data-lane="1"] select').first().selectOption("codel");
  await page.waitForFunction(() => document.querySelector("#cards")?.textContent.includes("Lane B: CoDel"));
  await reach(page, 0.5);
  assert.equal(await page.evaluate(() => globalThis.playground.begun.seed), 1);
});

test("going back and on again shows the same", { skip }, async (context) => {
  const page = await open(context);
  await reach(page, 6);
  await pause(page);
  await page.waitForTimeout(200);
  const first = await samples(page, 5);
  await page.evaluate(() => globalThis.playground.back(2));
  assert.ok((await time(page)) < 2.02);
  await page.evaluate(() => globalThis.playground.play(true));
  await reach(page, 5.5);
  assert.deepEqual(await samples(page, 5), first);
});

test("an address opens the same run", { skip }, async (context) => {
  const page = await open(context, {
    hash: "#rate=5&lane=droptail&lane=red&web=30&seed=7&change=0%3B2%3Bbottleneck.forward.rate%3B2+Mbit%2Fs",
  });
  await reach(page, 4);
  await pause(page);
  const other = await open(context, { hash: await page.evaluate(() => location.hash) });
  await reach(other, 4);
  assert.deepEqual(await samples(other, 3.9), await samples(page, 3.9));
});

test("a scenario that is saved gives its numbers on the command line", { skip }, async (context) => {
  const page = await open(context, { acceptDownloads: true });
  await reach(page, 4);
  await pause(page);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Open as scenario" }).click();
  const folder = mkdtempSync(join(tmpdir(), "playground-"));
  const file = join(folder, "lane.toml");
  await (await saved).saveAs(file);
  const text = readFileSync(file, "utf8");
  const stated = (name) => Number(new RegExp(`^#   ${name}\\s+(\\S+)`, "m").exec(text)?.[1]);
  const names = ["utilization", "sojourn_mean_s", "sojourn_p99_s"];
  let summary = JSON.parse(native(text).summary);
  for (const name of names) assert.equal(stated(name), summary.links.bottleneck.forward[name], name);
  if (!existsSync(AQMLAB)) return context.diagnostic(`NOT COMPARED WITH THE COMMAND LINE: no ${AQMLAB}`);
  execFileSync(AQMLAB, ["run", file, "--out", join(folder, "run")], { stdio: "ignore" });
  summary = JSON.parse(readFileSync(join(folder, "run", "summary.json"), "utf8"));
  for (const name of names) assert.equal(stated(name), summary.links.bottleneck.forward[name], name);
});

test("a story plays and tells", { skip }, async (context) => {
  const page = await open(context);
  await page.selectOption("#speed", "0");
  await page.click('[data-story="fairness"]');
  await page.selectOption("#speed", "0");
  const last = Math.max(...STORIES.find(({ id }) => id === "fairness").statements.map(({ to }) => to));
  await reach(page, last + 0.5);
  await page.waitForFunction(() => document.querySelectorAll("#story li.later").length === 0);
  assert.match(await page.textContent("#story"), /short round trips get/);
});

/** Waits until lane A, which begins anew, has this name. */
const lanesOf = (page, name) =>
  page.waitForFunction((said) => document.querySelector("#cards h2").textContent === `Lane A: ${said}`, name);

test("a named link sets the link, and says what it is and where its numbers are from", {
  skip,
}, async (context) => {
  const page = await open(context, { viewport: { width: 390, height: 900 } });
  const which = page.getByLabel("Which link");
  await which.selectOption("dsl");
  await lanesOf(page, "Drop-tail of the link");
  await reach(page, 3);
  await pause(page);
  assert.match(await page.textContent("#link-about"), /^DSL at home\. It leaves out interleaving/);
  const numbers = await page.textContent("#link-numbers");
  assert.match(numbers, /forward rate16 Mbit\/sthis project's choice, suite access/);
  assert.match(numbers, /reverse disciplinedroptail, limit 62500 bytes/);
  assert.equal(await page.locator("#link input").count(), 0, "no slider is left");
  assert.equal(await page.getByLabel("Round trip without queue").count(), 0);
  assert.equal(await page.textContent("#rate-now"), "16.0 Mbit/s");
  assert.match(await page.evaluate(() => location.hash), /^#link=dsl&/);
  await accessible(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `the page is ${wide} px wide`);
  const other = await open(context, { hash: await page.evaluate(() => location.hash) });
  await reach(other, 3);
  assert.deepEqual(await samples(other, 2.9), await samples(page, 2.9));
  await which.selectOption("");
  await page.waitForFunction(() => globalThis.playground.begun.link === "");
  assert.equal(await page.evaluate(() => globalThis.playground.begun.rate), 16);
  assert.equal(await page.locator("#link input").count(), 4);
});

test("a link that the page does not show says why; a trace and a policer run", { skip }, async (context) => {
  const page = await open(context);
  const refused = page.locator("#link option", { hasText: "data-centre" });
  assert.equal(await refused.isDisabled(), true);
  assert.match(await refused.textContent(), /\(faster than the 200 Mbit\/s of this page\)/);
  const received = () =>
    page.evaluate(() => {
      const { links } = globalThis.playground.player.lanes[0].data;
      return links.at(links.length - 1, links.columns - 3);
    });
  for (const [name, queue, loaded] of [
    ["cellular", "Drop-tail of the link", 0],
    ["policed", "Policer of the link", 1],
  ]) {
    await page.getByLabel("Which link").selectOption(name);
    await lanesOf(page, queue);
    await reach(page, 3);
    assert.ok((await received()) > 500_000, name);
    assert.equal((await scripts(page)).length, loaded, name);
    assert.equal(await page.locator("#problem").isVisible(), false);
  }
});

/** The files of engines that the page has loaded besides the first. */
const scripts = (page) =>
  page.evaluate(() => [...document.querySelectorAll("head script[src*=more]")].map(({ src }) => src));
const whyStory = (page) =>
  page.waitForFunction(() => document.querySelector("#why table") !== null, undefined, { timeout: 120_000 });
/** Milliseconds as the page writes them. */
const inMs = (text) => Number.parseFloat(text) * (text.endsWith(" ms") ? 1 : 1000);

test("a click on a point says why that response took so long", { skip }, async (context) => {
  const hash = "#rate=5&buffer=300&speed=0&transfers=2,cubic,40&web=60&call=0&lane=red&lane=fq-codel";
  const page = await open(context, { hash });
  await reach(page, 20);
  await pause(page);
  assert.deepEqual(await scripts(page), [], "the second engine is not loaded yet");
  await page.waitForTimeout(400);
  const plot = page.locator("#responses .u-over");
  const box = await plot.boundingBox();
  // A second, of an axis from 0.01 to 100 s, where nearly all are done.
  await plot.click({ position: { x: box.width / 2, y: 8 } });
  await whyStory(page);
  assert.equal((await scripts(page)).length, 1);
  const said = await page.textContent("#why");
  assert.match(said, /Lane [AB], complete at/);
  const [, took] = /This response took ([\d.]+ m?s)\. It spent \d+ % of this time /.exec(said);
  const nearest = await page.evaluate(
    (index) => {
      const { data } = globalThis.playground.player.lanes[index];
      const times = Array.from({ length: data.responses.length }, (_, row) => row)
        .filter((row) => data.classes[data.responses.at(row, 1)] === "web")
        .map((row) => 1000 * data.responses.at(row, 2));
      return times.reduce((one, other) => (Math.abs(other - 1000) < Math.abs(one - 1000) ? other : one));
    },
    Number(await page.inputValue("#why-lane")),
  );
  assert.ok(Math.abs(inMs(took) - nearest) < 0.06 * nearest, `${took}, not ${nearest} ms`);
  const times = await page.locator("#why tbody td:nth-child(2)").allTextContents();
  const sum = times.reduce((total, text) => total + inMs(text), 0);
  assert.ok(Math.abs(sum - inMs(took)) < 0.06 * inMs(took), `${sum} of ${took}`);
  await accessible(page);
});

test("the keyboard asks why, in the words of the command line", { skip }, async (context) => {
  const page = await open(context, { viewport: { width: 390, height: 900 }, colorScheme: "dark" });
  await page.click('[data-story="why"]');
  await page.selectOption("#speed", "0");
  await reach(page, 30);
  await pause(page);
  await page.selectOption("#why-lane", "1");
  await page.selectOption("#why-which", "1");
  await page.locator("#why-ask").focus();
  await page.keyboard.press("Enter");
  await whyStory(page);
  const words = JSON.parse(readFileSync(new URL("../src/why.json", import.meta.url), "utf8"));
  const said = await page.textContent("#why");
  assert.match(said, /Lane B, .* the slowest so far/);
  assert.ok(
    Object.values(words.causes).some(({ doing }) => said.includes(` % of this time ${doing}`)),
    said,
  );
  assert.match(said, /The costliest loss: .* It was sent again/);
  await accessible(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `the page is ${wide} px wide`);
});

/** Contrast of two colours as the browser writes them (WCAG 2.2). */
function contrast(one, other) {
  const light = (colour) => {
    const [red, green, blue] = colour.match(/\d+/g).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

for (const colorScheme of ["light", "dark"])
  test(`a phone: chart, Play, sliders, then the rest: ${colorScheme}`, { skip }, async (context) => {
    const page = await open(context, { viewport: { width: 390, height: 844 }, colorScheme });
    await pause(page);
    const seen = await page.evaluate(() => {
      const box = (selector) => document.querySelector(selector).getBoundingClientRect();
      const parts = [
        "#delay",
        "#play",
        "#link input[type=range]",
        ".network",
        "#cards",
        "#traffic",
        "#lanes",
      ];
      const check = box("#controls input[type=checkbox]");
      const style = getComputedStyle(document.querySelector("#share"));
      const lane = box("#cards .card");
      const table = document.querySelector("#numbers");
      return {
        table: [table.scrollWidth, table.parentElement.clientWidth],
        tops: parts.map((part) => box(part).top),
        check: [check.width, check.height],
        edge: [style.borderTopColor, style.backgroundColor],
        lane: lane.width,
      };
    });
    assert.deepEqual(
      seen.tops,
      seen.tops.toSorted((a, b) => a - b),
    );
    assert.ok(seen.tops[2] - seen.tops[0] < 844, `chart and sliders do not fit on a screen: ${seen.tops}`);
    assert.deepEqual(seen.check, [24, 24]);
    assert.ok(contrast(...seen.edge) >= 3, `the edge of a button: ${seen.edge}`);
    assert.ok(seen.table[0] <= seen.table[1], `lanes of the numbers are cut off: ${seen.table}`);
    assert.ok(seen.lane > 390 / 2, `two lanes share the screen: ${seen.lane} px`);
  });

test("QUIC loads the second engine, and TCP is back with the first", { skip }, async (context) => {
  const page = await open(context);
  assert.deepEqual(await scripts(page), []);
  await page.click('[data-story="quic"]');
  await page.waitForFunction(() =>
    globalThis.playground.player.lanes[0]?.data.classes.includes("transfers-2"),
  );
  await reach(page, 4);
  assert.equal((await scripts(page)).length, 1);
  const received = await page.evaluate(() => {
    const { links } = globalThis.playground.player.lanes[0].data;
    return links.at(links.length - 1, links.columns - 1);
  });
  assert.ok(received > 100_000, `${received} bytes over QUIC`);
  assert.equal(await page.locator("#problem").isVisible(), false);
  await page.click('[data-story="fairness"]');
  await page.waitForFunction(() => globalThis.playground.begun.story === "fairness");
  await reach(page, 1);
});

test("with reduced motion nothing plays by itself", { skip }, async (context) => {
  const page = await browser.newPage({ reducedMotion: "reduce" });
  context.after(() => page.close());
  await page.goto(PAGE);
  await page.waitForFunction(() => globalThis.playground?.player.lanes.length === 3);
  const shown = await time(page);
  await page.waitForTimeout(500);
  assert.equal(await time(page), shown);
});

test("the first screen is the first story under way", { skip }, async (context) => {
  const page = await open(context, { hash: "" });
  assert.ok((await time(page)) >= 10, "the chart is not empty");
  const [first] = STORIES;
  assert.equal(await page.getAttribute(`[data-story="${first.id}"]`, "aria-pressed"), "true");
  assert.match(await page.textContent("#story"), new RegExp(first.intro.slice(0, 40)));
  assert.equal(await page.evaluate(() => globalThis.playground.player.isPlaying), true);
  await page.reload();
  await page.waitForFunction(() => globalThis.playground?.player.time > 0);
  assert.match(await page.evaluate(() => location.hash), new RegExp(`story=${first.id}`));
});

test("paper is white, as wide as a sheet, and has no buttons", { skip }, async (context) => {
  const page = await open(context, { hash: "", colorScheme: "dark" });
  await pause(page);
  const ink = () => page.evaluate(() => getComputedStyle(document.body).color);
  const light = "rgb(27, 35, 48)";
  assert.notEqual(await ink(), light);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await ink(), light);
  assert.ok(await page.isHidden("#play"));
  assert.ok(await page.isHidden("#controls"));
  const widths = await page.evaluate(() =>
    [...document.querySelectorAll("canvas, table")].map((part) => part.getBoundingClientRect().right),
  );
  const [left, right] = await page.evaluate(() => {
    const box = document.body.getBoundingClientRect();
    return [box.left, box.right];
  });
  assert.ok(right - left <= 690 && Math.max(...widths) <= right + 1, `${widths} in ${left} to ${right}`);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.notEqual(await ink(), light);
  assert.ok(await page.isVisible("#play"));
  const sheets = await page.pdf({ format: "A4" });
  assert.ok(sheets.length > 10_000);
});

test("the keyboard reaches everything, in the order of the page", { skip }, async (context) => {
  const page = await open(context);
  await pause(page);
  const all = await page.evaluate(
    () =>
      [...document.querySelectorAll("button, select, input, summary, [tabindex='0']")].filter(
        (part) => !part.disabled && part.checkVisibility(),
      ).length,
  );
  await page.evaluate(() => document.body.focus());
  const reached = new Set();
  for (let step = 0; step < all; step += 1) {
    await page.keyboard.press("Tab");
    const seen = await page.evaluate(() => {
      const part = document.activeElement;
      part.dataset.reached ??= String(document.querySelectorAll("[data-reached]").length);
      return part === document.body ? "" : part.dataset.reached;
    });
    if (seen !== "") reached.add(seen);
  }
  assert.equal(reached.size, all);
});

test("what is wrong is said where it was written", { skip }, async (context) => {
  const page = await open(context);
  await page.locator('[data-lane="1"] summary').click();
  const target = page.locator('[data-lane="1"]').getByLabel("interval", { exact: true });
  await target.fill("soon");
  await target.blur();
  await page.waitForFunction(() => document.querySelector("#problem")?.textContent.includes("interval"));
});
