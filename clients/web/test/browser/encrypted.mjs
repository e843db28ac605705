// An encrypted room: two pages with the same key see and hear each other, over media lines and over
// data channels; pages with another key or without one do not, and say what to do; keys are
// changed, and frames are altered on the way.

import { appears, artefacts, base, blank, look, open, run, tell, until } from "./visit.mjs";

const small = { viewport: { width: 640, height: 480 } };
const figure = "publish=figure&points=2000&fps=10&tiles=2&qualities=low,high";
const key = encodeURIComponent("correct horse battery staple");

const decoded = (page) => page.evaluate(() => volsfu.conference.meters.total.decoded);
const counts = (page, who) => page.evaluate((name) => volsfu.conference.encryption?.counts.get(name), who);
/** Waits for more decoded frames. */
const more = async (page, frames = 10) => {
  const before = await decoded(page);
  await until(page, (n) => volsfu.conference.meters.total.decoded >= n, before + frames);
};
const state = (page, who, want) => until(page, ([name, state]) => volsfu.conference.secrecy.states().get(name) === state, [who, want]);
// The counts of a page are those of its last statistics, which follow the decoded frames.
const opened = (page, who) => until(page, (name) => volsfu.conference.encryption?.counts.get(name)?.opened >= 20, who);
const sign = (page) => page.locator(".lock").textContent();
const shown = async (page) => (await look(page)).shown;
/** Waits until half a percent of the picture shows people, and returns the share. */
const people = async (page) => (await appears(page, 0.005)).shown;

run(async () => {
  const ada = await open(`/?room=demo&identity=ada&${figure}#key=${key}`, small);
  await until(ada, () => globalThis.volsfu?.panel?.publisher?.state().live);
  await ada.keyboard.press("p");

  const eye = await open(`/?room=demo&identity=eye#key=${key}`, small);
  await until(eye, () => globalThis.volsfu?.conference.meters.total.decoded >= 20);
  await state(eye, "ada", "opened");
  await opened(eye, "ada");
  tell("seen", { shown: await people(eye), sign: await sign(eye), counts: await counts(eye, "ada"), failed: await eye.evaluate(() => volsfu.conference.meters.total.failed) });
  await eye.screenshot({ path: `${artefacts}/encrypted.png` });

  // Data channels, as in browsers without script access to media lines.
  const channels = await open(blank, small);
  await channels.addInitScript(() => {
    delete globalThis.RTCRtpScriptTransform;
    // Chunks are altered on their way to the worker, as a server could do: a bit of the frame, its
    // number, or a second copy with a newer timestamp, which the assembly of frames takes for new.
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (order, transfer) {
      if (order.type !== "chunk" || !globalThis.attack) {
        return postMessage.call(this, order, transfer);
      }
      const view = new DataView(order.data);
      const copy = { ...order, data: order.data.slice(0) };
      if (globalThis.attack === "bit") {
        view.setUint8(view.byteLength - 1, view.getUint8(view.byteLength - 1) ^ 1);
      } else if (globalThis.attack === "time") {
        view.setUint8(31, view.getUint8(31) ^ 1);
      } else if (globalThis.attack === "number") {
        view.setUint32(8, view.getUint32(8) + 1);
      }
      postMessage.call(this, order, transfer);
      if (globalThis.attack === "copy") {
        new DataView(copy.data).setUint32(16, new DataView(copy.data).getUint32(16) + 1);
        postMessage.call(this, copy, [copy.data]);
      }
    };
  });
  await channels.goto(`${base}/?room=demo&identity=channels#key=${key}`);
  await until(channels, () => globalThis.volsfu?.conference.meters.total.decoded >= 20);
  await opened(channels, "ada");
  tell("seen over channels", { shown: await people(channels), counts: await counts(channels, "ada") });
  const attacked = async (attack, reason) => {
    const before = await channels.evaluate(({ attack, reason }) => {
      globalThis.attack = attack;
      return volsfu.conference.encryption.counts.get("ada")[reason];
    }, { attack, reason });
    await until(channels, ({ reason, before }) => volsfu.conference.encryption.counts.get("ada")[reason] >= before + 10, { reason, before });
    await channels.evaluate(() => (globalThis.attack = ""));
  };
  await attacked("bit", "altered");
  await attacked("time", "altered");
  await attacked("number", "altered");
  await attacked("copy", "replay");
  await more(channels);
  await channels.keyboard.press("i");
  await until(channels, () => document.querySelector(".inspector .summary").textContent.includes("rejected: "));
  const inspected = await channels.locator(".inspector .summary").textContent();
  await channels.screenshot({ path: `${artefacts}/encrypted-inspector.png` });
  tell("attacked", { counts: await counts(channels, "ada"), message: inspected, failed: await channels.evaluate(() => volsfu.conference.meters.total.failed) });
  await channels.context().close();

  // Another key.
  const wrong = await open("/?room=demo&identity=wrong#key=another", small);
  await state(wrong, "ada", "wrong_key");
  await wrong.locator("#messages p").first().waitFor();
  tell("wrong key", { sign: await sign(wrong), message: await wrong.locator("#messages").textContent(), decoded: await decoded(wrong), shown: await shown(wrong) });
  await wrong.locator(".lock").click();
  await wrong.screenshot({ path: `${artefacts}/encrypted-wrong.png` });
  await wrong.locator(".secrecy input").fill("correct horse battery staple");
  await wrong.keyboard.press("Enter");
  await more(wrong);
  await state(wrong, "ada", "opened");
  tell("corrected", { sign: await sign(wrong), shown: await people(wrong) });
  await wrong.context().close();

  // No key: the room is entered again with one.
  const none = await open("/?room=demo&identity=none", small);
  await none.locator(".lock").waitFor();
  await none.locator("#messages p").first().waitFor();
  await none.waitForTimeout(1000);
  tell("without a key", { sign: await sign(none), message: await none.locator("#messages").textContent(), decoded: await decoded(none), failed: await none.evaluate(() => volsfu.conference.meters.total.failed) });
  await none.locator(".lock").click();
  await none.screenshot({ path: `${artefacts}/encrypted-missing.png` });
  await none.locator(".secrecy input").fill("3:0011");
  await none.keyboard.press("Enter");
  tell("unusable key", { message: await none.locator(".secrecy .problem").textContent() });
  await none.locator(".secrecy input").fill("correct horse battery staple");
  await none.keyboard.press("Enter");
  await until(none, () => globalThis.volsfu?.conference.encryption && volsfu.conference.meters.total.decoded >= 10);
  tell("key entered", { sign: await sign(none), shown: await people(none) });
  await none.context().close();

  // A page that is not encrypted is not shown to those with a key.
  const open_ = await open(`/?room=demo&identity=open&${figure}`, small);
  await until(open_, () => globalThis.volsfu?.panel?.publisher?.state().live);
  await state(eye, "open", "not_encrypted");
  await until(eye, () => document.querySelector(".lock").textContent === "Not everybody");
  tell("not encrypted", { sign: await sign(eye), tiles: await eye.evaluate(() => [...volsfu.conference.tiles()].filter((s) => s.track.participant === "open" && s.quality > -1).length) });
  await open_.context().close();
  await until(eye, () => !volsfu.conference.participants.has("open"));

  // The key is changed: all have it, all use it, all forget the previous one.
  const next = "1:000102030405060708090a0b0c0d0e0f";
  await eye.evaluate(() => (globalThis.before = volsfu.conference.encryption.total.rejected));
  await eye.locator(".lock").click();
  await eye.locator(".secrecy input").fill(next);
  await eye.keyboard.press("Enter");
  await ada.locator(".lock").click();
  await ada.locator(".secrecy input").fill(next);
  await ada.keyboard.press("Enter");
  await until(ada, () => volsfu.conference.encryption.using === 1);
  await more(eye, 20);
  await eye.getByRole("button", { name: "Forget older keys" }).click();
  await more(eye, 20);
  await eye.screenshot({ path: `${artefacts}/encrypted-panel.png` });
  tell("rotated", { rejected: await eye.evaluate(() => volsfu.conference.encryption.total.rejected - globalThis.before), epochs: await eye.evaluate(() => [...volsfu.conference.encryption.epochs]), sign: await sign(eye) });
  // The previous key is useless.
  const leaver = await open(`/?room=demo&identity=leaver#key=${key}`, small);
  await state(leaver, "ada", "unknown_epoch");
  tell("previous key", { decoded: await decoded(leaver), sign: await sign(leaver) });
  await leaver.context().close();
});
