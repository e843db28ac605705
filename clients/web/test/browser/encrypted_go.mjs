// Publishes a figure in an encrypted room for a client in Go, and sees that client's figure and hears
// its sound.

import { goOn, look, open, run, tell, until } from "./visit.mjs";

const small = { viewport: { width: 640, height: 480 } };

run(async () => {
  const page = await open("/?room=demo&identity=page&publish=figure&points=4000&fps=10&tiles=2#key=correct%20horse", small);
  await until(page, () => globalThis.volsfu?.panel?.publisher?.state().live);
  tell("live");
  await goOn();
  await page.keyboard.press("p");
  await until(page, () => volsfu.conference.encryption.counts.get("gopher")?.opened >= 200 && volsfu.conference.meters.total.decoded >= 20);
  tell("seen", {
    shown: (await look(page)).shown,
    ...(await page.evaluate(() => ({ failed: volsfu.conference.meters.total.failed, counts: volsfu.conference.encryption.counts.get("gopher") }))),
    kinds: await page.evaluate(() => volsfu.conference.participants.get("gopher").publications.filter((p) => p.encryption === "sframe").map((p) => p.kind).sort()),
  });
});
