// Publishes on lossy links, encrypted with a key or not, and counts the frames of a client in Go.

import { goOn, open, rest, run, tell, until } from "./visit.mjs";

const [seconds, key] = rest;

run(async () => {
  const page = await open(`/?room=demo&identity=page&publish=figure&points=4000&fps=10&tiles=2${key ? `#key=${key}` : ""}`, { viewport: { width: 320, height: 240 } });
  await until(page, () => globalThis.volsfu?.panel?.publisher?.state().live);
  tell("live");
  await goOn();
  await until(page, () => volsfu.conference.meters.total.decoded >= 20);
  const look = () => page.evaluate(() => ({ at: performance.now(), ...volsfu.conference.meters.total, counts: volsfu.conference.encryption?.counts.get("gopher") }));
  const before = await look();
  await page.waitForTimeout(1000 * Number(seconds));
  tell("watched", { before, after: await look() });
});
