// Renews the pictures of docs/playground.md: `node screenshots.mjs` after `make test-playground`.
import { mkdirSync, writeFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { STORIES, toAddress } from "./build/headless.js";
import { CHROMIUM, PAGE } from "./test/tools.mjs";

const folder = new URL("../docs/images/playground/", import.meta.url);
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const looks = [
  ["light", { viewport: { width: 1280, height: 1150 }, colorScheme: "light" }],
  ["dark", { viewport: { width: 1280, height: 1150 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 1500 }, colorScheme: "light" }],
];
for (const [look, options] of looks) {
  const page = await browser.newPage(options);
  const session = await page.context().newCDPSession(page);
  for (const { id, state, statements } of STORIES) {
    await page.goto("about:blank");
    await page.goto(`${PAGE}#${toAddress({ ...state, story: id, speed: 0 })}`);
    const end = Math.max(...statements.map(({ to }) => to));
    await page.waitForFunction((to) => globalThis.playground?.player.time >= to, end, { timeout: 300_000 });
    await page.evaluate(() => globalThis.playground.play(false));
    await page.waitForFunction(() => document.querySelectorAll("#story li.later").length === 0);
    const shot = await session.send("Page.captureScreenshot", { format: "webp", quality: 60 });
    writeFileSync(new URL(`${id}-${look}.webp`, folder), Buffer.from(shot.data, "base64"));
    console.log(id, look);
  }
  await page.close();
}
await browser.close();
