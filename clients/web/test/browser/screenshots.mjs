// Makes the pictures for the documentation.

import { artefacts, hintGone, open, run, tell, until } from "./visit.mjs";

run(async () => {
  for (const [name, options] of [
    ["viewer-light", { colorScheme: "light" }],
    ["viewer-dark", { colorScheme: "dark" }],
    ["viewer-phone", { colorScheme: "dark", viewport: { width: 390, height: 780 }, deviceScaleFactor: 2 }],
  ]) {
    const page = await open("/?room=demo&identity=Linus&detail=full", options);
    await until(page, (n) => globalThis.volsfu?.conference.meters.total.decoded >= n, 120);
    // Renderers in software draw one pixel for four of a phone.
    await page.evaluate((ratio) => {
      volsfu.world.renderer.setPixelRatio(ratio);
      volsfu.world.resize();
    }, options.deviceScaleFactor ?? 1);
    await hintGone(page);
    await page.screenshot({ path: `${artefacts}/${name}.png` });
    if (name === "viewer-dark") {
      await page.keyboard.press("t");
      await page.keyboard.press("i");
      await page.waitForTimeout(1500);
      await page.screenshot({ path: `${artefacts}/inspector.png` });
    }
    await page.getByRole("button", { name: "Leave" }).click();
    await page.locator(".room-card").first().waitFor();
    await page.context().close();
  }
  const lobby = await open("/", { colorScheme: "dark", viewport: { width: 390, height: 780 }, deviceScaleFactor: 2 });
  await lobby.locator(".room-card").first().waitFor();
  await lobby.screenshot({ path: `${artefacts}/lobby-phone.png` });
  await lobby.context().close();

  const eye = await open("/?room=demo&identity=Linus", { viewport: { width: 640, height: 360 } });
  await until(eye, () => globalThis.volsfu?.conference.meters.total.decoded >= 40);
  for (const colorScheme of ["light", "dark"]) {
    const page = await open("/console", { colorScheme, viewport: { width: 1280, height: 860 } });
    await page.locator(".name", { hasText: "Linus" }).click();
    await page.waitForTimeout(colorScheme === "light" ? 15_000 : 2000);
    await page.screenshot({ path: `${artefacts}/console-${colorScheme}.png` });
    await page.context().close();
  }
  tell("made");
});
