// Moves a page to another server: ada publishes on the server that is drained, bob and eye are on the
// other one. It reports the frames of points that leave the publishers and that arrive at ada and at
// eye, the pauses of sound at eye, and the delays of the pages. All times are in milliseconds since 1970. The arguments
// are the address of the other server, and the fragment of the pages' addresses.

import { goOn, listen, open, openForeign, publishWithSound, rest, run, tell, until } from "./visit.mjs";

const small = { viewport: { width: 320, height: 240 } };
const [other, fragment = ""] = rest;
const light = "points=500&fps=10&tiles=2&qualities=low&decode=off";

/** Records how late a timer of a page is. */
const recordDelays = (page) => page.evaluate(() => {
  globalThis.delays = [];
  let due = Date.now() + 20;
  setInterval(() => {
    const now = Date.now();
    if (now - due >= 50) {
      globalThis.delays.push({ begin: due, end: now });
    }
    due = now + 20;
  }, 20);
});

/** Records the numbers of the frames of a participant that a page shows, those that are late, and the states of the page. */
const record = (page, who) => page.evaluate((name) => {
  const { events } = volsfu.conference;
  const { frame, state } = events;
  globalThis.numbers = new Map();
  globalThis.states = [];
  globalThis.late = new Map();
  events.frame = (track, decoded) => {
    if (track.participant === name) {
      globalThis.numbers.set(track.tile, [...(globalThis.numbers.get(track.tile) ?? []), decoded.number]);
      globalThis.late.set(track.tile, [...(globalThis.late.get(track.tile) ?? []), ...decoded.late]);
    }
    frame(track, decoded);
  };
  events.state = (now, why) => {
    globalThis.states.push({ at: Date.now(), state: now, why });
    state(now, why);
  };
}, who);

/** Records the numbers and the times of the frames that leave a page: a slow page leaves out some. */
const recordSent = (page) => page.evaluate(() => {
  const { figures } = volsfu.panel.publisher;
  const sent = figures.sent.bind(figures);
  globalThis.sentNumbers = new Map();
  figures.sent = (frame, at) => {
    globalThis.sentNumbers.set(frame.tile, [...(globalThis.sentNumbers.get(frame.tile) ?? []), { number: frame.number, at: Date.now() }]);
    sent(frame, at);
  };
});

/** Waits for a number of further frames of each tile. */
const more = async (page, frames) => {
  const before = await page.evaluate(() => Math.max(0, ...[...globalThis.numbers.values()].map((n) => n.length)));
  await until(page, (count) => globalThis.numbers.size === 2 && [...globalThis.numbers.values()].every((n) => n.length > count), before + frames);
};

const seen = async (page, publisher) => ({
  ...(await page.evaluate(() => ({
    tiles: [0, 1].map((tile) => globalThis.numbers.get(tile)), late: [0, 1].map((tile) => globalThis.late.get(tile)), states: globalThis.states, delays: globalThis.delays,
    rejected: volsfu.conference.encryption?.total.rejected ?? 0, messages: document.querySelector("#messages").textContent,
  }))),
  sent: await publisher.evaluate(() => [0, 1].map((tile) => globalThis.sentNumbers.get(tile))),
  sender: await publisher.evaluate(() => globalThis.delays),
});

/** Records the times without sound of a participant, from 100 ms. */
const quiet = (page) => page.evaluate(() => {
  let begin = Date.now();
  globalThis.pauses = [];
  setInterval(() => {
    const now = Date.now();
    if (globalThis.loudness() > 1e-3) {
      begin = now;
    } else if (now - begin >= 100) {
      if (globalThis.pauses.at(-1)?.begin === begin) {
        globalThis.pauses.pop();
      }
      globalThis.pauses.push({ begin, end: now });
    }
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
  await until(bob, () => volsfu.panel?.publisher?.state().live);
  await recordDelays(ada);
  await recordDelays(bob);
  await recordSent(ada);
  await recordSent(bob);
  const eye = await openForeign(other + address("eye", "decode=off"));
  const { sounds } = await listen(eye);
  await sounds();
  await recordDelays(eye);
  await record(ada, "bob");
  await record(eye, "page");
  await more(ada, 20);
  await more(eye, 20);
  await quiet(eye);
  tell("watching", { session: await ada.evaluate(() => volsfu.conference.session.resume.session) });
  await goOn();

  await until(ada, (server) => volsfu.conference.session.servers.present.includes(server) && !volsfu.conference.reception.moving, new URL(other).host);
  await more(ada, 20);
  await more(eye, 20);
  tell("moved", {
    session: await ada.evaluate(() => volsfu.conference.session.resume.session), ada: await seen(ada, bob), eye: await seen(eye, ada),
    pauses: await eye.evaluate(() => globalThis.pauses),
  });
});
