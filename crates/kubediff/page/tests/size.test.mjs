// The cost of a visit: bytes over the wire, and movements under the reader. Times depend on the machine, and no test asserts them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Browsers, WINDOWS, demo, stage, ui, until } from "./demo.mjs";

/** The most bytes of a first load with a page full of rows. */
const FIRST = 90_000;
/** The most bytes of all scripts. */
const SCRIPTS = 30_000;
/** The most that may move, as browsers measure it. */
const SHIFT = 0.02;

/** @type {Awaited<ReturnType<typeof demo>>} */
let shop;
/** @type {Browsers} */
let browsers;

stage(async (...all) => {
  [shop, browsers] = all;
  await until("full page", async () => (await browsers.json(`${shop.origin}/v1/changes?fold=0&limit=101`)).next);
});

/** The answers to the first load of an address, with their bytes. */
async function load(address) {
  const page = await browsers.window();
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const answers = new Map();
  session.on("Network.responseReceived", ({ requestId, type, response }) => answers.set(requestId, { type, url: response.url, bytes: 0 }));
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => (answers.get(requestId).bytes = encodedDataLength));
  await page.goto(address, { waitUntil: "load" });
  assert.equal(await page.locator("ol.rows li").count(), 100);
  await page.context().close();
  return [...answers.values()].filter((it) => it.type !== "EventSource");
}

const sum = (answers) => answers.reduce((all, it) => all + it.bytes, 0);

test("the first load asks this server alone, for each file once, and is small", async (t) => {
  const answers = await load(`${shop.origin}/?fold=0`);
  for (const { url } of answers) assert.equal(new URL(url).origin, shop.origin);
  assert.equal(new Set(answers.map((it) => it.url)).size, answers.length);
  const scripts = answers.filter((it) => it.type === "Script");
  assert.ok(scripts.length > 0);
  t.diagnostic(`${sum(answers)} bytes, of which scripts ${sum(scripts)}`);
  assert.ok(sum(answers) <= FIRST, `a first load of ${sum(answers)} bytes`);
  assert.ok(sum(scripts) <= SCRIPTS, `scripts of ${sum(scripts)} bytes`);
});

/** Notes what moves without the reader. */
function observe() {
  const noted = /** @type {any} */ (window);
  noted.shifts = [];
  const note = (list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue;
      noted.shifts.push({ value: entry.value, moved: entry.sources.map((it) => it.node?.outerHTML?.slice(0, 80)) });
    }
  };
  new PerformanceObserver(note).observe({ type: "layout-shift", buffered: true });
}

/** Two frames later, all that moved is noted. */
const settled = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)))));

test("nothing moves while the page loads, when rows come, and when the server ends", async (t) => {
  const page = await ui(shop.history);
  t.after(() => page.end());
  const own = await Browsers.open(page.link);
  t.after(() => own.end());
  const windows = [];
  for (const options of WINDOWS) {
    const window = await own.window(options);
    await window.addInitScript(observe);
    for (const path of ["/help", "/about", "/at?kind=pods", "/diff?from=-1h", "/?until=now", "/?fold=0"]) {
      await window.goto(page.origin + path);
      await settled(window);
      const shifts = await window.evaluate(() => /** @type {any} */ (globalThis).shifts);
      assert.ok(shifts.reduce((all, it) => all + it.value, 0) <= SHIFT, `${path}: ${JSON.stringify(shifts)}`);
    }
    windows.push(window);
  }
  for (const window of windows) await window.locator("button.pill").waitFor({ state: "visible", timeout: 60_000 });
  await page.end();
  for (const [at, window] of windows.entries()) {
    await window.locator("#live .note").filter({ hasText: /./ }).waitFor();
    await settled(window);
    const shifts = await window.evaluate(() => /** @type {any} */ (globalThis).shifts);
    assert.ok(shifts.reduce((all, it) => all + it.value, 0) <= SHIFT, `${JSON.stringify(WINDOWS[at])}: ${JSON.stringify(shifts)}`);
  }
});

test("nothing went wrong in any window", () => assert.deepEqual(browsers.unexpected(), []));
