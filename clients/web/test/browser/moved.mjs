// Moves a page to another server: ada publishes on the server that is drained, bob and eye are on the
// other one. Frames of points arrive once and without gaps at ada and at eye, and sound goes on. The
// arguments are the address of the other server, and the fragment of the pages' addresses.

import { base, goOn, listen, open, openForeign, publishWithSound, rest, run, tell, until } from "./visit.mjs";

const small = { viewport: { width: 320, height: 240 } };
const [other, fragment = ""] = rest;
const light = "points=500&fps=10&tiles=2&qualities=low&decode=off";

/** Records the numbers of the frames of a participant that a page shows, and the states of the page. */
const record = (page, who) => page.evaluate((name) => {
  const { events } = volsfu.conference;
  const { frame, state } = events;
  globalThis.numbers = new Map();
  globalThis.states = [];
  events.frame = (track, decoded) => {
    if (track.participant === name) {
      globalThis.numbers.set(track.tile, [...(globalThis.numbers.get(track.tile) ?? []), decoded.number]);
    }
    frame(track, decoded);
  };
  events.state = (now, why) => {
    globalThis.states.push(now);
    state(now, why);
  };
}, who);

/** Waits for a number of further frames of each tile. */
const more = async (page, frames) => {
  const before = await page.evaluate(() => Math.max(0, ...[...globalThis.numbers.values()].map((n) => n.length)));
  await until(page, (count) => globalThis.numbers.size === 2 && [...globalThis.numbers.values()].every((n) => n.length > count), before + frames);
};

const seen = (page) => page.evaluate(() => ({
  tiles: [...globalThis.numbers.values()], states: globalThis.states, missing: volsfu.conference.meters.total.missing,
  rejected: volsfu.conference.encryption?.total.rejected ?? 0, messages: document.querySelector("#messages").textContent,
}));

/** Measures the longest time without sound of a participant in milliseconds. */
const quiet = (page) => page.evaluate(() => {
  let since = performance.now();
  globalThis.longestQuiet = 0;
  setInterval(() => {
    if (globalThis.loudness() > 1e-3) {
      since = performance.now();
    }
    globalThis.longestQuiet = Math.max(globalThis.longestQuiet, performance.now() - since);
  }, 20);
});

run(async () => {
  const address = (identity, more) => `/?room=demo&identity=${identity}&${more}${fragment}`;
  const ada = await open(address("page", light), small);
  await publishWithSound(ada);
  const bob = await openForeign(other + address("bob", light));
  await until(bob, () => globalThis.volsfu?.conference.room);
  await bob.keyboard.press("p");
  await bob.locator(".self form button").focus();
  await bob.keyboard.press("Enter");
  const eye = await openForeign(other + address("eye", "decode=off"));
  const { sounds } = await listen(eye);
  await sounds();
  await record(ada, "bob");
  await record(eye, "page");
  await more(ada, 20);
  await more(eye, 20);
  await quiet(eye);
  tell("watching", { session: await ada.evaluate(() => volsfu.conference.session.resume.session) });
  await goOn();

  await until(ada, (server) => volsfu.conference.session.servers.present.includes(server) && volsfu.conference.move === undefined, new URL(other).host);
  await more(ada, 20);
  await more(eye, 20);
  tell("moved", {
    session: await ada.evaluate(() => volsfu.conference.session.resume.session), ada: await seen(ada), eye: await seen(eye),
    quiet: await eye.evaluate(() => globalThis.longestQuiet), lines: await ada.evaluate(() => volsfu.sound.tracks.size), host: new URL(base).host,
  });
});
