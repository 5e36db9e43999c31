// The page with a keyboard alone: everything can be reached, is seen when it is reached, and the keys do what the help says.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Browsers, demo, screens, stage, until } from "./demo.mjs";

/** @type {Awaited<ReturnType<typeof demo>>} */
let shop;
/** @type {Browsers} */
let browsers;

stage((...all) => ([shop, browsers] = all));

/** The element that has the focus: its place among all that can have it, how it is outlined, and whether another element hides it. */
function focused() {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const style = getComputedStyle(element);
  const seen = [...element.getClientRects()].some((box) => {
    const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
    const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
    const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return left < right && top < bottom && there && (element.contains(there) || there.contains(element));
  });
  return {
    what: element.outerHTML.slice(0, 120), seen,
    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    place: [...document.querySelectorAll("*")].indexOf(element),
  };
}

/** The places of what somebody can use. */
function usable() {
  const all = [...document.querySelectorAll("*")];
  const controls = all.filter((it) => it.matches(`a[href], button, input:not([type="hidden"]), select, textarea, summary, [tabindex]`));
  return controls
    .filter((it) => it.getAttribute("tabindex") !== "-1" && it.checkVisibility({ visibilityProperty: true }))
    .map((it) => ({ place: all.indexOf(it), what: it.outerHTML.slice(0, 120) }));
}

/** Presses Tab until the page is left, and gives what had the focus. */
async function walk(page) {
  const steps = [];
  for (;;) {
    await page.keyboard.press("Tab");
    const step = await page.evaluate(focused);
    if (!step || steps.some((it) => it.place === step.place)) return steps;
    steps.push(step);
  }
}

test("Tab reaches everything on every screen in its order, and shows where it is", async () => {
  const story = await browsers.rollout(shop.origin);
  const errors = ["/nothing", "/?since=soon", "/?q=nobody&since=-1s"];
  for (const path of [...screens(story), ...errors]) {
    // An end, so that no live row comes meanwhile.
    const page = await browsers.window();
    await page.goto(shop.origin + (path === "/" ? `/?until=${new Date().toISOString()}` : path));
    const wanted = await page.evaluate(usable);
    const steps = await walk(page);
    const places = steps.map((step) => step.place);
    assert.deepEqual(wanted.filter((it) => !places.includes(it.place)), [], `${path}: out of reach`);
    assert.deepEqual(places, [...places].sort((a, b) => a - b), `${path}: not in order`);
    assert.deepEqual(steps.filter((it) => !it.seen), [], `${path}: hidden when it has the focus`);
    assert.deepEqual(steps.filter((it) => it.outline < 2), [], `${path}: without an outline`);
    await page.context().close();
  }
});

test("the first Tab offers to skip the navigation", async () => {
  const page = await browsers.window();
  await page.goto(`${shop.origin}/about`);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => document.activeElement?.closest("main")), "the next one is in the content");
});

/** A window in which one can print and copy. */
async function desk() {
  const page = await browsers.window({ permissions: ["clipboard-read", "clipboard-write"] });
  await page.addInitScript(() => {
    window.print = () => document.documentElement.setAttribute("data-printed", "");
  });
  return page;
}

const focus = (page) => page.evaluate(() => document.activeElement?.id);
const row = (page) => page.evaluate(() => document.activeElement?.closest("[data-row]")?.getAttribute("data-row"));
const copied = (page) => page.evaluate(() => navigator.clipboard.readText());

/** The effect of each key of the help. */
const KEYS = {
  async "/"(page) {
    await page.goto(shop.origin);
    await page.keyboard.press("/");
    assert.equal(await focus(page), "search");
    assert.equal(await page.inputValue("#search"), "", "the key itself is not written");
    await page.keyboard.type("j/k");
    assert.equal(await page.inputValue("#search"), "j/k", "in a box they are letters");
  },
  async Esc(page) {
    await page.goto(shop.origin);
    await page.focus("#search");
    await page.keyboard.press("Escape");
    assert.notEqual(await focus(page), "search");
  },
  async "j k"(page) {
    await page.goto(`${shop.origin}/?fold=0`);
    const keys = await page.locator("[data-row]").evaluateAll((all) => all.map((it) => it.getAttribute("data-row")));
    const pressed = [["k", 0], ["j", 1], ["j", 2], ["k", 1], ["k", 0], ["k", 0]];
    for (const [key, at] of pressed) {
      await page.keyboard.press(`${key}`);
      assert.equal(await row(page), keys[Number(at)], `${key} to ${at}`);
    }
  },
  async Enter(page) {
    await page.goto(`${shop.origin}/?fold=0&kind=deploy`);
    await page.keyboard.press("j");
    const key = await row(page);
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/${key}`);
  },
  async o(page) {
    await page.goto(`${shop.origin}/?fold=0&kind=deploy`);
    await page.keyboard.press("j");
    await page.keyboard.press("o");
    await page.waitForURL("**/o/deployments.apps/shop/*");
  },
  async t(page) {
    for (const [path, field] of [["/", "field-since"], ["/diff", "field-from"], ["/at", "time"], ["/o/deployments.apps/shop/cart", "at"]]) {
      await page.goto(shop.origin + path);
      await page.keyboard.press("t");
      assert.equal(await focus(page), field, path);
      await page.keyboard.type("-5m");
      assert.equal(await page.inputValue(`#${field}`), "-5m", path);
    }
  },
  async "[ ]"(page) {
    const story = await browsers.rollout(shop.origin);
    const object = `${shop.origin}/o/deployments.apps/shop/${story.object.name}`;
    for (const first of [`${shop.origin}/`, object, `${shop.origin}/at`]) {
      await page.goto(first);
      const newest = page.url();
      await page.keyboard.press("[");
      await page.waitForURL((url) => url.href !== newest);
      const older = page.url();
      if (first.endsWith("/at")) continue;
      await page.keyboard.press("]");
      await page.waitForURL((url) => url.href !== older);
    }
  },
  async l(page) {
    await page.goto(shop.origin);
    const button = page.locator("button.live");
    for (const [pressed, state] of [["false", "paused"], ["true", ""]]) {
      await page.keyboard.press("l");
      assert.equal(await button.getAttribute("aria-pressed"), pressed);
      await page.waitForFunction((state) => document.querySelector("#live .note")?.textContent === state, state);
    }
  },
  async y(page) {
    await page.goto(`${shop.origin}/?kind=pods`);
    await page.keyboard.press("y");
    await page.getByText("The link is copied.").waitFor();
    assert.equal(await copied(page), page.url());
  },
  async m(page) {
    const story = await browsers.rollout(shop.origin);
    await page.goto(`${shop.origin}/story/${story.id}`);
    await page.keyboard.press("m");
    await page.getByText("The story is copied as Markdown.").waitFor();
    const text = await copied(page);
    assert.match(text, /image/);
    assert.ok(text.includes(`${shop.origin}/story/${story.id}`), text);
  },
  async p(page) {
    await page.goto(`${shop.origin}/about`);
    await page.keyboard.press("p");
    await page.locator("html[data-printed]").waitFor();
  },
  async "g t"(page) {
    await page.goto(`${shop.origin}/help`);
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.waitForURL(`${shop.origin}/`);
  },
  async "g a"(page) {
    await page.goto(shop.origin);
    await page.keyboard.press("g");
    await page.keyboard.press("a");
    await page.waitForURL("**/about");
  },
  async "g d"(page) {
    await page.goto(shop.origin);
    await page.keyboard.press("g");
    await page.keyboard.press("d");
    await page.waitForURL("**/diff");
  },
  async "?"(page) {
    await page.goto(`${shop.origin}/nothing`);
    await page.keyboard.press("?");
    await page.waitForURL("**/help");
  },
};

test("the help names the keys that are tested here", async () => {
  const page = await browsers.window();
  await page.goto(`${shop.origin}/help`);
  const named = await page.locator(`section[aria-labelledby="keys"] tbody th`).allInnerTexts();
  assert.deepEqual(named.map((text) => text.trim()), Object.keys(KEYS));
});

for (const [key, does] of Object.entries(KEYS)) {
  test(`the key ${key} does what the help says`, async () => {
    const page = await desk();
    await does(page);
    await page.context().close();
  });
}

test("keys that are switched off stay off, and leave the page as it is", async () => {
  const page = await browsers.window();
  await page.goto(`${shop.origin}/help`);
  await page.getByRole("button", { name: "Switch the keys off" }).press("Enter");
  await page.getByText("The keys are off.").waitFor();
  await page.goto(`${shop.origin}/?fold=0`);
  for (const key of ["/", "j", "t"]) {
    await page.keyboard.press(key);
    assert.equal(await focus(page), "", key);
    assert.equal(await row(page), undefined, key);
  }
  await page.goto(`${shop.origin}/help`);
  await page.getByRole("button", { name: "Switch the keys on" }).press("Enter");
  await page.keyboard.press("/");
  assert.equal(await focus(page), "search");
});

test("keys of the browser are its own", async () => {
  const page = await browsers.window();
  await page.goto(`${shop.origin}/?fold=0`);
  for (const key of ["Control+j", "Alt+j", "Meta+j"]) await page.keyboard.press(key);
  assert.equal(await row(page), undefined);
});

test("somebody finds the change of an image without a mouse, and goes Back and Forward", async () => {
  const story = await browsers.rollout(shop.origin);
  const page = await browsers.window();
  const places = [];
  const there = async (pattern) => {
    await page.waitForURL(pattern);
    places.push([page.url(), await page.locator("h1").innerText()]);
  };
  await page.goto(shop.origin);
  await there((url) => url.pathname === "/");
  await page.keyboard.press("/");
  await page.keyboard.type(`kind:deploy ${story.object.name}`);
  await page.keyboard.press("Enter");
  await there(/q=/);
  await until("row of the story", async () => {
    await page.keyboard.press("j");
    return (await row(page)) === `story/${story.id}`;
  });
  await page.keyboard.press("Enter");
  await there(/\/story\//);
  await page.focus("h1 a");
  await page.keyboard.press("Enter");
  await there(/\/o\//);
  await page.getByRole("link", { name: "Compare" }).press("Enter");
  await there(/tab=diff/);

  const [first, searched] = [places[0], places[1]];
  for (const [url, title] of places.slice(0, -1).reverse()) {
    await page.goBack();
    assert.deepEqual([page.url(), await page.locator("h1").innerText()], [url, title]);
  }
  assert.equal(page.url(), first[0]);
  // It follows again what comes.
  await page.locator("button.pill").waitFor({ state: "visible", timeout: 60_000 });
  for (const [url, title] of places.slice(1)) {
    await page.goForward();
    assert.deepEqual([page.url(), await page.locator("h1").innerText()], [url, title]);
    if (url === searched[0]) assert.equal(await page.inputValue("#search"), `${story.object.name} kind:deploy`);
  }
});

test("nothing went wrong in any window", () => assert.deepEqual(browsers.unexpected(), []));
