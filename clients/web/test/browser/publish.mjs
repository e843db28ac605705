// Publishes a figure from a page: nothing is encoded without receivers, requested qualities are
// sent, and publishing continues after a loss of the network.

import { artefacts, goOn, look, open, run, tell, until } from "./visit.mjs";

/** The page's state of its publication. */
const state = (page) => page.evaluate(() => volsfu.panel.publisher.state());
const total = (page) => page.evaluate(() => ({ ...volsfu.panel.publisher.figures.total }));
const taken = (page, names) => until(page, (want) => {
  const taken = volsfu.panel?.publisher?.state().qualities.filter((q) => q.taken > 0).map((q) => q.name).join();
  return taken === want ? "yes" : undefined;
}, names);

run(async () => {
  const page = await open("/?room=demo&identity=page&publish=figure&points=4000&fps=10&tiles=2", { viewport: { width: 640, height: 480 } });
  await until(page, () => volsfu?.panel?.publisher?.state().live);
  await until(page, () => volsfu.panel.publisher.state().ready);
  await taken(page, "");
  // Tiles that were in transfer to an encoder have been encoded by now.
  await page.waitForTimeout(1000);
  const resting = await total(page);
  await page.waitForTimeout(1500);
  tell("resting", { encoded: (await total(page)).encoded - resting.encoded, before: resting.encoded, headline: await page.locator(".self .headline").textContent() });
  await goOn();

  await taken(page, "low,mid,high");
  await until(page, () => volsfu.panel.publisher.state().qualities.every((q) => q.fps > 2));
  tell("sending", { ...(await state(page)), sentences: await page.locator(".self .sentences").textContent() });
  await goOn();

  const eye = await open("/?room=demo&identity=eye", { viewport: { width: 640, height: 480 } });
  await until(eye, () => globalThis.volsfu?.conference.meters.total.decoded >= 20);
  const seen = await look(eye);
  tell("seen", { shown: seen.shown, failed: await eye.evaluate(() => volsfu.conference.meters.total.failed) });
  await eye.screenshot({ path: `${artefacts}/published.png` });
  await eye.evaluate(() => volsfu.conference.choose({ participant: "page", publication: "body", quality: 0 }));
  await taken(page, "low,mid");
  tell("suppressed");
  await page.screenshot({ path: `${artefacts}/publishing.png` });

  const session = await page.evaluate(() => volsfu.conference.session.resume.session);
  await goOn();
  await until(page, () => document.querySelector("#room").dataset.state === "resuming");
  tell("broken");
  await goOn();
  await until(page, () => document.querySelector("#room").dataset.state === "joined");
  const before = await eye.evaluate(() => volsfu.conference.meters.total.decoded);
  await until(eye, (n) => volsfu.conference.meters.total.decoded >= n + 10, before);
  tell("resumed", { same: session === (await page.evaluate(() => volsfu.conference.session.resume.session)) });

  await page.getByRole("button", { name: "Stop" }).focus();
  await page.keyboard.press("Enter");
  // When it is opened again, the panel has checked the available sources.
  await page.keyboard.press("p");
  await page.keyboard.press("p");
  await until(eye, () => volsfu.conference.participants.get("page")?.publications.length === 0);
  await page.waitForFunction(() => [...document.querySelectorAll(".self .note")].every((n, i) => i === 0 || n.textContent !== ""));
  tell("stopped", { notes: await page.locator(".self .note").allTextContents() });
});
