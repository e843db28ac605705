// Loses its network while receiving, and continues afterwards.

import { goOn, open, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open("/?room=demo&identity=eye");
  await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 20);
  const session = await page.evaluate(() => volsfu.conference.session.resume.session);
  tell("watching");
  await goOn();
  await until(page, () => document.querySelector("#room").dataset.state === "resuming");
  tell("broken", { message: await page.locator(".status").textContent() });
  await until(page, () => document.querySelector("#room").dataset.state === "joined");
  const count = await page.evaluate(() => volsfu.conference.meters.total.decoded);
  await until(page, (before) => volsfu.conference.meters.total.decoded >= before + 20, count);
  tell("resumed", { same: session === (await page.evaluate(() => volsfu.conference.session.resume.session)) });
});
