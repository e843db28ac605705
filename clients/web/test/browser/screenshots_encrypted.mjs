// Makes the picture of an encrypted room for the documentation.

import { artefacts, hintGone, open, run, tell, until } from "./visit.mjs";

const key = encodeURIComponent("correct horse battery staple");

run(async () => {
  const page = await open(`/?room=demo&identity=Linus#key=${key}`, { colorScheme: "light" });
  await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 120);
  await page.locator(".lock").click();
  await page.locator(".secrecy h2").click();
  await page.waitForTimeout(1000);
  await hintGone(page);
  await page.screenshot({ path: `${artefacts}/encrypted.png` });
  await page.context().close();
  tell("made");
});
