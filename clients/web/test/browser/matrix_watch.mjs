// Decodes a room until enough frames have arrived, and reports the counts as receivers of the lab do.

import { open, rest, run, tell, until } from "./visit.mjs";

const [room, frames, key] = rest;

run(async () => {
  const page = await open(`/?room=${room}&identity=browser${key ? `#key=${encodeURIComponent(key)}` : ""}`, { viewport: { width: 320, height: 240 } });
  await until(page, (n) => {
    const { decoded, failed } = globalThis.volsfu?.conference?.meters.total ?? {};
    return failed > 0 || decoded >= n;
  }, Number(frames));
  const { decoded, failed } = await page.evaluate(() => volsfu.conference.meters.total);
  tell("watched", { frames_decoded: decoded, frames_undecodable: failed, said: await page.locator("#messages").textContent() });
});
