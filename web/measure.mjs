// What a frame of the page costs with three lanes at ten times real time, and how fast lanes are at most:
// `node measure.mjs`, on a machine that has nothing else to do. No test: it measures the machine, too.
import { chromium } from "playwright-core";
import { CHROMIUM, PAGE } from "./test/tools.mjs";

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });

/** Costs of the page's own work in a frame, gaps between frames, simulated seconds per second. */
async function measure(hash, seconds) {
  await page.goto("about:blank");
  await page.goto(PAGE + hash);
  await page.waitForFunction(() => globalThis.playground?.player.time > 5);
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  // What the page's thread computed: others on the machine do not count.
  const computed = async () =>
    1000 * (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
  const before = await computed();
  const found = await page.evaluate(async (duration) => {
    const shown = globalThis.playground;
    const tick = shown.tick.bind(shown);
    const [costs, gaps] = [[], []];
    let last = performance.now();
    shown.tick = (now) => {
      gaps.push(now - last);
      last = now;
      const begun = performance.now();
      tick(now);
      costs.push(performance.now() - begun);
    };
    const [from, begun] = [shown.player.time, performance.now()];
    await new Promise((resolve) => setTimeout(resolve, 1000 * duration));
    const frames = costs.length;
    const speed = (shown.player.time - from) / ((performance.now() - begun) / 1000);
    const at = (values, share) => values.sort((a, b) => a - b)[Math.floor(share * values.length)].toFixed(1);
    return { cost: [at(costs, 0.5), at(costs, 0.95)], gap: [at(gaps, 0.5), at(gaps, 0.95)], speed: speed.toFixed(1), frames };
  }, seconds);
  return { ...found, thread: ((await computed()) - before) / found.frames };
}

const lanes = "lane=droptail&lane=codel&lane=fq-codel";
const cases = {
  "three lanes, 10 x real time": `#rate=10&web=50&speed=10&${lanes}`,
  "100 Mbit/s of web, one lane, as fast as it goes": "#rate=100&transfers=0&web=2000&speed=0&lane=droptail",
};
for (const [name, hash] of Object.entries(cases)) {
  const { cost, gap, speed, thread } = await measure(hash, 10);
  console.log(`${name}: ${speed} simulated s per s; a frame costs the page ${cost[0]} ms (95 %: ${cost[1]}),`);
  console.log(`  frames are ${gap[0]} ms apart (95 %: ${gap[1]}), with ${thread.toFixed(1)} ms of its thread`);
}
await browser.close();
