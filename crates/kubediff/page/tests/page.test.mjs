// The page in a real browser: what people do there, with a keyboard alone, without JavaScript, on a phone, and with hostile content.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Browsers, WINDOWS, axe, demo, excess, screens, stage } from "./demo.mjs";

/** @type {Awaited<ReturnType<typeof demo>>} */
let shop;
/** @type {Browsers} */
let browsers;

stage((...all) => ([shop, browsers] = all));

const rollout = () => browsers.rollout(shop.origin);

test("somebody on call sees in two clicks what changed, and by whom", async () => {
  const story = await rollout();
  const page = await browsers.window();
  await page.goto(shop.origin);
  const opened = Date.now();
  await page.fill("#search", story.object.name);
  await page.press("#search", "Enter");
  await page.waitForURL(/q=/);
  const row = page.locator(`[data-row="story/${story.id}"]`);
  assert.match(await row.innerText(), /rolled out in|\d+ pods? replaced/);
  await row.locator(".text a").click();
  await page.waitForURL(/\/story\//);
  assert.match(await page.locator("ul.differences").first().innerText(), /image/);
  assert.ok(Date.now() - opened < 15_000);
  assert.ok((await page.locator("figure.strip a").count()) >= 2, "the pods are drawn");
  assert.ok((await page.locator("ol.rows li").count()) >= 4, "all its changes are listed");

  // From there to the lines of the object and their authors.
  await page.locator("h1 a").click();
  await page.waitForURL(/\/o\/deployments.apps\/shop\//);
  const line = page.locator("table.manifest tr", { hasText: "image:" }).first();
  assert.match(await line.innerText(), /argocd-controller/);
  await page.reload();
  assert.match(await line.innerText(), /argocd-controller/);
  await page.goBack();
  assert.match(page.url(), /\/story\//);
});

test("a reviewer finds what people changed by hand, and opens it with the keyboard", async () => {
  const page = await browsers.window();
  for (let tries = 0; ; tries++) {
    await page.goto(`${shop.origin}/search?s=${encodeURIComponent("by:kubectl-* fold:0")}`);
    if ((await page.locator("ol.rows .row").count()) > 0) break;
    assert.ok(tries < 60, "no change by hand");
    await page.waitForTimeout(500);
  }
  assert.match(page.url(), /by=kubectl-\*|by=kubectl-%2A/);
  for (const by of await page.locator("ol.rows .by").allInnerTexts()) assert.match(by, /kubectl-/);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/change\//);
  assert.match(await page.locator("dl.facts").innerText(), /kubectl-/);
  await page.keyboard.press("?");
  await page.waitForURL(/\/help/);
});

test("rows come by themselves, and wait until somebody wants them", async () => {
  const page = await browsers.window();
  await page.goto(`${shop.origin}/?fold=0`);
  const rows = page.locator("ol.rows li");
  const before = await rows.count();
  const pill = page.locator("button.pill");
  await pill.waitFor({ state: "visible", timeout: 60_000 });
  assert.equal(await rows.count(), before, "nothing moves by itself");
  await pill.click();
  assert.ok((await rows.count()) > before);
  const keys = await page.locator("[data-row]").evaluateAll((all) => all.map((it) => it.getAttribute("data-row")));
  const own = keys.filter((key) => !key?.endsWith("/0"));
  assert.equal(new Set(own).size, own.length, "no row twice");
});

test("everything is there without JavaScript", async () => {
  const story = await rollout();
  const page = await browsers.window({ javaScriptEnabled: false });
  await page.goto(shop.origin);
  await page.locator("ol.rows .text a").first().waitFor();
  await page.fill("#search", "#1");
  await page.locator("form.search button").click();
  assert.match(page.url(), /\/change\/1$/);
  await page.goto(`${shop.origin}/story/${story.id}`);
  assert.ok((await page.locator("figure.strip rect").count()) > 2);
  await page.goto(`${shop.origin}/at/?kind=pods`);
  assert.ok((await page.locator("table.objects tbody tr").count()) > 1);
});

test("axe finds nothing on any screen, light, dark and on a phone, and no screen is wider than its window", async () => {
  const paths = screens(await rollout());
  for (const options of WINDOWS) {
    const page = await browsers.window(options);
    for (const path of paths) {
      await page.goto(shop.origin + path);
      assert.deepEqual(await axe(page), [], `${path} ${JSON.stringify(options)}`);
      assert.equal(await excess(page), 0, `${path} is too wide: ${JSON.stringify(options)}`);
    }
    await page.context().close();
  }
});

test("hostile content stays text, and fits a phone", async () => {
  const markup = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;
  const name = `hostile-${Date.now()}-${"long".repeat(50)}`;
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, annotations: { note: markup } }, data: { [`k${"x".repeat(60)}`]: markup, text: `\u202e${markup}\n${markup}`.repeat(50) } };
  const answer = await fetch(`${shop.server}/api/v1/namespaces/shop/configmaps?fieldManager=${encodeURIComponent(markup)}`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  assert.equal(answer.status, 201);
  const page = await browsers.window();
  for (let tries = 0; ; tries++) {
    const response = await page.goto(`${shop.origin}/o/configmaps/shop/${name}`);
    if (response?.status() === 200) break;
    assert.ok(tries < 60, "it is not recorded");
    await page.waitForTimeout(250);
  }
  const hostile = [`/o/configmaps/shop/${name}`, `/o/configmaps/shop/${name}?tab=changes`, `/?q=${name}&fold=0`, `/?by=${encodeURIComponent(markup)}`, `/at?kind=cm&ns=shop`, "/diff?from=-5m&kind=cm"];
  for (const path of hostile) {
    await page.goto(shop.origin + path);
    assert.equal(await page.locator("main img, main script").count(), 0, path);
  }
  const phone = await browsers.window(WINDOWS[2]);
  for (const path of hostile) {
    await phone.goto(shop.origin + path);
    assert.equal(await excess(phone), 0, `${path} is too wide`);
    assert.deepEqual(await axe(phone), [], path);
  }
  assert.deepEqual(browsers.unexpected(), []);
});

test("nothing went wrong in any window", () => assert.deepEqual(browsers.unexpected(), []));
