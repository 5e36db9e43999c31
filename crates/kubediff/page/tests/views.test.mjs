// The page by the clocks of other time zones, in the night when clocks go back, and on paper.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Browsers, WINDOWS, demo, excess, screens, stage, ui, until } from "./demo.mjs";

/** @type {Awaited<ReturnType<typeof demo>>} */
let shop;
/** @type {Browsers} */
let browsers;

stage((...all) => ([shop, browsers] = all));

/** A time as a clock of a zone shows it. */
const clock = (iso, timeZone) => new Date(iso).toLocaleTimeString("en-GB", { timeZone, hour12: false });

/** The times of the rows: as they are shown, and what they stand for. */
const times = (page) => page.locator(".row time").evaluateAll((all) => all.map((it) => [it.textContent, /** @type {HTMLTimeElement} */ (it).dateTime]));

/** A time up to which all records are in the history: times in it only grow, and a later one is there. */
async function settled() {
  const time = new Date().toISOString();
  await until(`record after ${time}`, async () => {
    const { items } = await browsers.json(`${shop.origin}/v1/changes?limit=1&fold=0`);
    return items.some((item) => Date.parse(item.observed_at) > Date.parse(time));
  });
  return time;
}

test("times are those of the zone that the page names, whatever the zone of the browser", async (t) => {
  await browsers.rollout(shop.origin);
  const end = await settled();
  for (const [zone, offset] of [["Asia/Kolkata", "+05:30"], ["Pacific/Honolulu", "-10:00"]]) {
    const page = await ui(shop.history, zone);
    t.after(() => page.end());
    const own = await Browsers.open(page.link);
    t.after(() => own.end());
    for (const timezoneId of ["Europe/Berlin", "America/St_Johns"]) {
      const window = await own.window({ timezoneId });
      await window.goto(`${page.origin}/?fold=0&until=${end}`);
      const shown = await times(window);
      assert.ok(shown.length > 10);
      for (const [text, iso] of shown) assert.equal(text, clock(iso, zone), `${timezoneId}: ${iso}`);
      assert.match(await window.locator("footer").innerText(), new RegExp(`Times are in ${zone}, now UTC\\${offset}`));

      // What somebody writes is a time of the same zone.
      const [newest] = shown;
      await window.goto(`${page.origin}/at?time=${encodeURIComponent(`${newest[0]}`)}`);
      const at = decodeURIComponent(new URL(window.url()).pathname.split("/")[2]);
      assert.equal(clock(at, zone), newest[0]);
      assert.ok(Math.abs(Date.parse(at) - Date.parse(newest[1])) < 1000, `${at} is ${newest[1]}`);
    }
    assert.deepEqual(own.unexpected(), []);
  }
});

/** Rules of a zone whose clocks go back by an hour at this moment. */
function back(moment) {
  const summer = new Date(moment.getTime() + 3_600_000);
  const day = Math.floor((summer.getTime() - Date.UTC(summer.getUTCFullYear(), 0, 1)) / 86_400_000) + 1;
  // Such rules count no 29 February.
  const isLeap = new Date(Date.UTC(summer.getUTCFullYear(), 1, 29)).getUTCMonth() === 1;
  return `STD0SUM-1,J1/0,J${isLeap && day > 59 ? day - 1 : day}/${summer.toISOString().slice(11, 19)}`;
}

test("in the night when clocks go back, rows keep their order, and nothing is lost", async (t) => {
  await browsers.rollout(shop.origin);
  const end = await settled();
  const first = await browsers.window();
  await first.goto(`${shop.origin}/?fold=0&until=${end}`);
  const known = (await times(first)).map(([, iso]) => iso);
  const middle = new Date(Math.floor(Date.parse(`${known[known.length >> 1]}`) / 1000) * 1000);
  const page = await ui(shop.history, back(middle));
  t.after(() => page.end());
  const own = await Browsers.open(page.link);
  t.after(() => own.end());
  const window = await own.window();
  await window.goto(`${page.origin}/?fold=0&until=${end}`);
  const shown = await times(window);
  assert.deepEqual(shown.map(([, iso]) => iso), known);
  for (const [text, iso] of shown) {
    const hours = Date.parse(`${iso}`) < middle.getTime() ? 3_600_000 : 0;
    assert.ok(`${text}`.startsWith(new Date(Date.parse(`${iso}`) + hours).toISOString().slice(11, 19)), `${iso} is ${text}`);
  }
  // An hour more or less is no hour of changes.
  const bars = await window.locator("figure.histogram tbody tr").count();
  await first.goto(`${shop.origin}/?fold=0&until=${end}`);
  assert.equal(bars, await first.locator("figure.histogram tbody tr").count());
  assert.deepEqual(own.unexpected(), []);
});

test("on paper there is a head with the cluster, the zone and the address, all is unfolded, and nothing to press", async () => {
  const story = await browsers.rollout(shop.origin);
  for (const path of screens(story)) {
    // The width of A4 without its margins, at 96 dots in an inch.
    const page = await browsers.window({ viewport: { width: 718, height: 1046 }, colorScheme: "dark" });
    await page.goto(shop.origin + path);
    const pdf = await page.pdf({ format: "A4", tagged: true });
    assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
    await page.emulateMedia({ media: "print" });
    const head = await page.locator("p.printed").innerText();
    assert.match(head, /Cluster testapi as of .*, times in Europe\/Berlin, now UTC\+0[12]:00, printed from /);
    assert.ok(head.endsWith(page.url()), head);
    const pressed = page.locator("button, input, select, summary, .button, header nav, header form, nav.tabs, nav.pager, nav.steps, footer");
    assert.equal(await pressed.filter({ visible: true }).count(), 0, path);
    assert.equal(await excess(page), 0, `${path} is too wide for the paper`);
    const cut = await page.locator(".scroll, pre").evaluateAll((all) => all.filter((it) => it.checkVisibility() && it.scrollHeight > it.clientHeight + 1).map((it) => it.outerHTML.slice(0, 100)));
    assert.deepEqual(cut, [], `${path}: cut off`);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)", path);
    if (path.startsWith("/story/")) assert.ok(await page.locator("details table").isVisible(), "the table of the pods");
    await page.context().close();
  }
});

test("somebody with a finger unfolds, opens and goes back", async () => {
  const story = await browsers.rollout(shop.origin);
  const page = await browsers.window(WINDOWS[2]);
  await page.goto(`${shop.origin}/?kind=deploy&since=1970-01-01`);
  await page.locator("details.filters summary").tap();
  await page.locator("#field-name").tap();
  await page.locator("#field-name").fill(story.object.name);
  await page.locator(".filters button").tap();
  await page.waitForURL(/name=/);
  await page.locator(`[data-row="story/${story.id}"] .text a`).tap();
  await page.waitForURL(/\/story\//);
  assert.equal(await excess(page), 0);
  await page.goBack();
  await page.waitForURL(/name=/);
});

test("nothing went wrong in any window", () => assert.deepEqual(browsers.unexpected(), []));
