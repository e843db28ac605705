// Uses the keyboard alone: rooms and names keep the focus while others join and leave, keys work
// with caps lock, and failures are shown.

import { goOn, open, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open("/");
  await page.locator(".room-card", { hasText: "demo" }).focus();
  tell("focused");
  await goOn();
  await until(page, () => document.querySelectorAll(".room-card").length === 2);
  const room = await page.evaluate(() => document.activeElement?.dataset.room ?? "");
  await page.keyboard.press("Enter");
  await page.locator(".people button", { hasText: "grace" }).focus();
  tell("entered", { room });
  await goOn();
  await until(page, () => document.querySelectorAll(".people button").length === 2);
  tell("joined by another", { who: await page.evaluate(() => document.activeElement?.dataset.who ?? "") });

  await page.keyboard.press("I");
  await page.locator(".inspector tbody tr").first().waitFor();
  tell("inspected");

  const said = async (what) => tell("said", { message: await until(page, (words) => [...document.querySelectorAll("#messages p")].map((p) => p.textContent).find((text) => text.includes(words)), what) });
  await page.evaluate(() => {
    document.documentElement.requestFullscreen = () => Promise.reject(new TypeError("not granted"));
  });
  await page.keyboard.press("F");
  await said("Full screen");
  await page.route(/panel[^/]*\.js/, (route) => route.abort());
  await page.keyboard.press("P");
  await said("Show yourself");
});
