// What a visit costs: bytes over the wire. Times depend on the machine, and no test asserts them.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browsers, demo, until } from "./demo.mjs";

/** The most bytes of all scripts. */
const SCRIPTS = 30_000;

/** @type {Awaited<ReturnType<typeof demo>>} */
let shop;
/** @type {Browsers} */
let browsers;

before(async () => {
  shop = await demo();
  browsers = await Browsers.open(shop.link);
  await until("full page", async () => (await browsers.json(`${shop.origin}/v1/changes?fold=0&limit=101`)).next);
});
after(async () => {
  await browsers?.end();
  await shop?.end();
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

test("the first load asks this server alone, for each file once, and the scripts are small", async (t) => {
  const answers = await load(`${shop.origin}/?fold=0`);
  for (const { url } of answers) assert.equal(new URL(url).origin, shop.origin);
  assert.equal(new Set(answers.map((it) => it.url)).size, answers.length);
  const scripts = answers.filter((it) => it.type === "Script");
  assert.ok(scripts.length > 0);
  t.diagnostic(`${sum(answers)} bytes, of which scripts ${sum(scripts)}`);
  assert.ok(sum(scripts) <= SCRIPTS, `scripts of ${sum(scripts)} bytes`);
});

test("nothing went wrong in any window", () => assert.deepEqual(browsers.unexpected(), []));
