// Uses a room as a person would: sees people, walks, chooses a quality, tints.

import { appears, artefacts, open, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open("/?room=demo&identity=eye");
  await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 40);
  const first = await appears(page, 0.03);
  const second = await appears(page, 0.03, first);
  tell("seen", {
    shown: first.shown, changed: first.sum !== second.sum,
    ...(await page.evaluate(() => ({ people: [...volsfu.conference.participants.keys()], failed: volsfu.conference.meters.total.failed }))),
  });
  await page.screenshot({ path: `${artefacts}/viewer.png` });

  const before = await page.evaluate(() => volsfu.world.camera.position.toArray());
  await page.locator("#stage").focus();
  await page.keyboard.down("w");
  // With rendering on a busy processor, walking is slower.
  await until(page, (from) => Math.hypot(...volsfu.world.camera.position.toArray().map((v, i) => v - from[i])) > 0.3, before);
  await page.keyboard.up("w");
  const after = await page.evaluate(() => volsfu.world.camera.position.toArray());
  tell("walked", { metres: Math.hypot(...after.map((v, i) => v - before[i])) });

  await page.keyboard.press("i");
  const quality = page.locator(".inspector select").first();
  await quality.selectOption("0");
  const chosen = await until(page, () => [...volsfu.conference.tiles()].find((s) => s.quality === 0 && s.reason === "choice")?.track);
  await until(page, (tile) => [...volsfu.conference.tiles()].some((s) => s.track.tile === tile.tile && volsfu.conference.meters.figures(s.mid, performance.timeOrigin + performance.now())?.quality === 0), chosen);
  tell("chosen", { tile: chosen });
  // Publisher and server send the times of frames once the inspector is open.
  const layers = await until(page, () => {
    const at = performance.timeOrigin + performance.now();
    const told = [...volsfu.conference.tiles()].map((s) => volsfu.conference.layers.figures(s.track, at));
    return told.find((l) => l && Number.isFinite(l.uplink));
  });
  await until(page, () => [...document.querySelectorAll(".inspector tbody tr")].some((row) => row.cells[6].textContent.endsWith(" ms")));
  tell("layers", layers);
  await page.screenshot({ path: `${artefacts}/inspector.png` });
  await page.keyboard.press("i");

  await page.keyboard.press("t");
  await until(page, () => [...volsfu.world.objects.placed.values()].some((o) => [...o.tiles.values()].some((c) => c.object.material.uniforms.tint.value > 0)));
  tell("tinted");
  await page.keyboard.press("t");
  await page.getByRole("button", { name: "Leave" }).click();
  await page.locator("#lobby").waitFor();
  await page.locator(".room-card").first().waitFor();
  tell("left", { rooms: await page.locator(".room-card strong").allTextContents() });
});
