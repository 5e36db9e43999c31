// The page when something is missing or wrong: mistakes, an empty history, a server or a watch that has ended, a visitor who has not signed in.

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Browsers, WINDOWS, axe, demo, excess, stage, start, ui, until } from "./demo.mjs";

/** @type {Awaited<ReturnType<typeof demo>>} */
let shop;
/** @type {Browsers} */
let browsers;
/** @type {string} */
let folder;

before(() => (folder = mkdtempSync(join(tmpdir(), "kubediff-page-"))));
stage((...all) => ([shop, browsers] = all));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Looks at a page as it is now: axe finds nothing, and it is not wider than its window. */
async function sound(page, name) {
  assert.deepEqual(await axe(page), [], `${name}: ${page.url()}`);
  assert.equal(await excess(page), 0, `${name}: too wide at ${page.url()}`);
}

/** Watches with a history of its own, until the test ends. */
async function watch(t, args, history) {
  const all = ["watch", ...args, "--history", history, "--kubeconfig", shop.kubeconfig];
  const watching = await start(all, [/(watching \d+)/]);
  t.after(() => watching.end());
  return watching;
}

/** The page on a history, and browsers in it, until the test ends. */
async function enter(t, history) {
  const page = await ui(history);
  t.after(() => page.end());
  const own = await Browsers.open(page.link);
  t.after(() => own.end());
  return { page, own };
}

test("a mistake is named, with a way on, light, dark and on a phone", async () => {
  const { object } = await browsers.rollout(shop.origin);
  const its = `/o/deployments.apps/shop/${object.name}`;
  const mistakes = [
    ["/nothing", 404, /no such page/, /\/nothing/],
    ["/story/999999", 404, /story/, /999999|no such/],
    ["/change/999999", 404, /#999999/, /history covers/],
    ["/change/first", 404, /no such page/, /first/],
    ["/o/deployments.apps/shop/nobody", 404, /no such thing/, /nobody/],
    [`${its}?at=2020-01-01T00:00:00Z`, 404, /no state.*2020-01-01/, /first state here/],
    [`${its}?tab=colours`, 400, /`tab`/, /related/],
    ["/?since=soon", 400, /`since`/, /yesterday 14:05/],
    ["/?since=14:00&until=13:00", 400, /`until`/, /ends before it begins/],
    ["/?change=painted", 400, /`change`/, /added, updated, deleted/],
    ["/?fold=perhaps", 400, /`fold`/, /./],
    ["/?cursor=nothing", 400, /`cursor`/, /./],
    ["/at/whenever/", 400, /`time`/, /whenever/],
    ["/at/2100-01-01T00:00:00Z/", 400, /`time`/, /future/],
    ["/diff?from=whenever", 400, /`from`/, /whenever/],
    ["/?kind=nodez", 400, /`kind`/, /no resource `nodez`/],
    ["/search?s=cart+web", 400, /several names/, /ns:shop/],
    ["/search?s=%23x", 400, /`s`/, /#812/],
  ];
  for (const options of WINDOWS) {
    const page = await browsers.window(options);
    for (const [path, status, title, text] of mistakes) {
      const answer = await page.goto(`${shop.origin}${path}`);
      assert.equal(answer.status(), status, `${path}`);
      assert.match(await page.locator("h1").innerText(), /** @type {RegExp} */ (title));
      assert.match(await page.locator("main").innerText(), /** @type {RegExp} */ (text));
      assert.ok(await page.getByRole("link", { name: "Go to the timeline" }).isVisible());
      await sound(page, JSON.stringify(options));
    }
    await page.context().close();
  }
});

test("nothing found says what was looked for, where, and leads on", async () => {
  const parts = [
    ["/?q=nobody&since=-1s", /No change.*between/],
    ["/at/2020-01-01T00:00:00Z/", /no object at this time/],
    ["/diff?from=now", /Nothing differs between/],
    ["/o/deployments.apps/shop/cart?path=spec.nothing", /No line of the manifest is at this path/],
    ["/o/deployments.apps/shop/cart?tab=events", /no Event of this object/],
    ["/?colour=red", /no parameter `colour`/],
    ["/?colour=red&size=2", /none of the parameters colour, size/],
  ];
  for (const options of WINDOWS) {
    const page = await browsers.window(options);
    for (const [path, text] of parts) {
      const answer = await page.goto(`${shop.origin}${path}`);
      assert.equal(answer.status(), 200, `${path}`);
      assert.match(await page.locator("body").innerText(), /** @type {RegExp} */ (text));
      await sound(page, JSON.stringify(options));
    }
    await page.goto(`${shop.origin}/?q=nobody&since=-1s`);
    await page.getByRole("link", { name: "Look at a wider period" }).press("Enter");
    await page.waitForURL(/since=-24h/);
    await page.context().close();
  }
});

test("an empty history says so, and shows what comes", async (t) => {
  const history = join(folder, "empty.db");
  await watch(t, ["cm", "-n", "shop", "-l", "page=test"], history);
  const { page, own } = await enter(t, history);
  for (const options of WINDOWS) {
    const window = await own.window(options);
    for (const [path, text] of [["/", /history is empty/], ["/at", /no object/], ["/at?kind=cm", /no object of this kind/], ["/diff?from=-1h", /history is empty/], ["/about", /history is empty/], ["/change/1", /no change #1/]]) {
      await window.goto(`${page.origin}${path}`);
      assert.match(await window.locator("main").innerText(), /** @type {RegExp} */ (text), `${path}`);
      await sound(window, JSON.stringify(options));
    }
    await window.context().close();
  }
  const window = await own.window();
  await window.goto(page.origin);
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "first", labels: { page: "test" } } };
  const made = await fetch(`${shop.server}/api/v1/namespaces/shop/configmaps`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  assert.equal(made.status, 201);
  await window.locator("button.pill").click();
  assert.match(await window.locator("ol.rows").innerText(), /shop\/first/);
  assert.equal(await window.getByText("The history is empty").count(), 0);
  await sound(window, "the first row");
  assert.deepEqual(own.unexpected(), []);
});

test("a server that has ended is no live page, and the rows that came stay", async (t) => {
  const { page, own } = await enter(t, shop.history);
  const windows = await Promise.all(WINDOWS.map((options) => own.window(options)));
  for (const window of windows) {
    await window.goto(`${page.origin}/?fold=0`);
    await window.locator("button.pill").waitFor({ state: "visible", timeout: 60_000 });
  }
  await page.end();
  for (const window of windows) {
    await window.locator("#live").getByText("offline").waitFor();
    await sound(window, "without a server");
    const rows = window.locator("ol.rows li");
    const count = await rows.count();
    await window.locator("button.pill").click();
    assert.ok((await rows.count()) > count);
  }
});

test("a watch that is killed and comes back: a gap, no row twice, none missing", async (t) => {
  const history = join(folder, "killed.db");
  const first = await watch(t, ["-A"], history);
  const { page, own } = await enter(t, history);
  const window = await own.window();
  await window.goto(`${page.origin}/?fold=0`);
  const pill = window.locator("button.pill");
  await pill.waitFor({ state: "visible", timeout: 60_000 });
  await first.end("SIGKILL");
  await pill.click();
  // Nobody sees the changes from here on.
  const kept = await window.locator("ol.rows li").count();
  await watch(t, ["-A"], history);
  await until("gap on the page", async () => {
    if (await pill.isVisible()) await pill.click();
    return (await window.locator(".row.is-gap").count()) > 0;
  });
  await until("row after the gap", async () => {
    if (await pill.isVisible()) await pill.click();
    const sorts = await window.locator(".row").evaluateAll((all) => all.map((it) => it.className));
    return sorts.findIndex((it) => it.includes("is-gap")) > 0;
  });
  assert.ok((await window.locator("ol.rows li").count()) > kept);
  const shown = await window.locator(".row.is-change").evaluateAll((all) => all.map((it) => Number(it.getAttribute("data-row")?.split("/")[1])));
  assert.equal(new Set(shown).size, shown.length, "no row twice");
  const { items } = await own.json(`${page.origin}/v1/changes?fold=0&limit=1000`);
  const newest = Math.max(...shown);
  const oldest = Math.min(...shown);
  const recorded = items.map((item) => item.number).filter((it) => it >= oldest && it <= newest);
  assert.deepEqual([...shown].sort((a, b) => a - b), recorded.sort((a, b) => a - b), "none is missing");
  assert.match(await window.locator(".row.is-gap").first().innerText(), /not watched for/);
  await sound(window, "with a gap");
  assert.deepEqual(own.unexpected(), []);
});

test("a cluster that is gone: the screens say since when nothing is watched", async (t) => {
  const other = await demo();
  t.after(() => other.end());
  const [kubeconfig, history] = [join(folder, "gone"), join(folder, "gone.db")];
  copyFileSync(other.kubeconfig, kubeconfig);
  const watching = await start(["watch", "-A", "--history", history, "--kubeconfig", kubeconfig], [/(watching \d+)/]);
  t.after(() => watching.end());
  const { page, own } = await enter(t, history);
  await other.end();
  const first = await own.window();
  await until("notice", async () => {
    await first.goto(page.origin);
    return (await first.locator(".notices").getByText(/not watched since/).count()) > 0;
  });
  for (const options of WINDOWS) {
    const window = await own.window(options);
    for (const path of ["/", "/at?kind=pods", "/about", "/o/deployments.apps/shop/cart"]) {
      await window.goto(page.origin + path);
      assert.match(await window.locator("body").innerText(), /not watched since.*:/, path);
      await sound(window, JSON.stringify(options));
    }
  }
  assert.deepEqual(own.unexpected(), []);
});

test("a visitor who has not entered by the link sees nothing of the cluster", async () => {
  for (const options of WINDOWS) {
    const context = await browsers.chromium.newContext(options);
    const page = await context.newPage();
    const answer = await page.goto(`${shop.origin}/about`);
    assert.equal(answer.status(), 403);
    assert.match(await page.locator("h1").innerText(), /not entered by the link/);
    assert.doesNotMatch(await page.content(), /testapi/);
    await sound(page, JSON.stringify(options));
    await context.close();
  }
});

test("somebody signs in with a token, sees the page they asked for, and signs out, with the keyboard alone", async (t) => {
  writeFileSync(join(folder, "kubediff.yaml"), "cluster: prod\nhistory: {path: served.db}\nlisten: null\nweb: {listen: '127.0.0.1:0'}\n");
  const daemon = await start(["serve", "-c", join(folder, "kubediff.yaml"), "--kubeconfig", shop.kubeconfig], [/the page is on (\S+)/, /(watching)/]);
  t.after(() => daemon.end());
  const origin = daemon.found[0];
  for (const options of WINDOWS) {
    const context = await browsers.chromium.newContext(options);
    const page = await context.newPage();
    await page.goto(`${origin}/at?kind=pods`);
    assert.match(page.url(), /\/login\?to=/);
    assert.equal(await page.title(), "Sign in · kubediff");
    assert.doesNotMatch(await page.content(), /prod/);
    await sound(page, JSON.stringify(options));
    await page.getByLabel("A token of the cluster").focus();
    await page.keyboard.type("a-token");
    await page.keyboard.press("Enter");
    await page.waitForURL(`${origin}/at?kind=pods`);
    assert.match(await page.locator("header").innerText(), /prod/);
    await sound(page, JSON.stringify(options));
    await page.getByRole("button", { name: "Sign out" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/login/);
    await page.goBack();
    await page.reload();
    assert.match(page.url(), /\/login\?to=/);
    await context.close();
  }
});

test("nothing went wrong in any window", () => assert.deepEqual(browsers.unexpected(), []));
