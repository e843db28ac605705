// Pages of another origin that use the npm package: the page of the tutorial, opened twice, and a
// page that embeds the viewer. The argument is the address of the pages.

import { artefacts, base, openForeign, rest, run, tell, until } from "./visit.mjs";

const [pages] = rest;

run(async () => {
  const server = `server=${encodeURIComponent(base)}`;
  const visitors = await Promise.all([1, 2].map(async () => {
    const page = await openForeign("about:blank");
    await page.addInitScript(() => addEventListener("joined", ({ target: { session } }) => session.on("frame", ({ participant, points }) => {
      if (participant !== session.identity && points.count > 0) {
        globalThis.firstPoints ??= performance.timeOrigin + performance.now();
      }
    })));
    await page.goto(pages);
    return page;
  }));
  const seen = await Promise.all(visitors.map((page) => until(page, () => globalThis.firstPoints, undefined, 20)));
  const loaded = await Promise.all(visitors.map((page) => page.evaluate(() => performance.timeOrigin + performance.getEntriesByType("navigation")[0].loadEventEnd)));
  await visitors[0].screenshot({ path: `${artefacts}/package.png` });
  tell("seen", { milliseconds: Math.max(...seen) - Math.max(...loaded) });
  // The server keeps the place of a participant who has not left for longer than the test waits. A browser does not
  // promise to send the last message of a page: one of three pages has to leave.
  for (let page = visitors[1], left = false, attempt = 1; !left; attempt++) {
    const leaver = await until(page, () => document.querySelector("volsfu-room")?.session?.identity);
    await until(visitors[0], (who) => document.querySelector("volsfu-room").session.participants.has(who), leaver);
    await page.goto("about:blank");
    const gone = (who) => !document.querySelector("volsfu-room").session.participants.has(who);
    left = await visitors[0].waitForFunction(gone, leaver, { polling: 100, timeout: attempt < 3 ? 15_000 : 60_000 })
      .then(() => true, (reason) => {
        if (attempt === 3) {
          throw reason;
        }
        return false;
      });
    await page.close();
    if (!left) {
      page = await openForeign(pages);
    }
  }
  tell("left");

  const embedding = await openForeign(`${pages}/embed.html?${server}&identity=eye`);
  const events = await until(embedding, () => globalThis.events?.participant && globalThis.events.statistics?.frames.decoded > 0 && globalThis.events);
  await embedding.screenshot({ path: `${artefacts}/embedding.png` });
  tell("embedded", { events });

  // The page is not in the list of the viewer's address: it receives nothing, although it shows the room.
  await embedding.evaluate((base) => {
    globalThis.events = {};
    document.querySelector("iframe").src = `${base}/?room=demo&identity=other&embed=https://other.example`;
  }, base);
  await until(visitors[0], () => document.querySelector("volsfu-room").session?.participants.has("other"));
  await embedding.evaluate(() => (globalThis.events = {}));
  await embedding.waitForTimeout(2500);
  tell("strange", { events: await embedding.evaluate(() => Object.keys(globalThis.events)) });
});
