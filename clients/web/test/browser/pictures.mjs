// Publishes a webcam and a screen: another page shows moving pictures of the right sizes on panels,
// chooses a quality, enlarges a panel, and sees the panels end. The arguments are the codec, and
// "long" for the steps that need a server with much time.

import { open, rest, run, tell, until } from "./visit.mjs";

const small = { viewport: { width: 480, height: 270 } };
const [codec = "VP8", long] = rest;

/** Waits until a panel has shown three different pictures of a width, any width without one, and returns the size. */
function moves(page, name, width) {
  return until(page, ([publication, wide]) => {
    const panel = globalThis.volsfu?.world.objects.panels().find((p) => p.publication === publication)?.panel;
    if (!panel?.picture || (wide !== undefined && panel.picture.width !== wide)) {
      return undefined;
    }
    const canvas = new OffscreenCanvas(64, 36);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(panel.video, 0, 0, 64, 36);
    const sums = ((panel.sums ??= new Map()).get(wide) ?? panel.sums.set(wide, new Set()).get(wide));
    sums.add(context.getImageData(0, 0, 64, 36).data.reduce((sum, v) => (Math.imul(sum, 31) + v) | 0, 0));
    return sums.size >= 3 ? panel.picture : undefined;
  }, [name, width]);
}

/** Reports whether the middle of every panel is in the view. */
const inView = (page) => page.evaluate(() => volsfu.world.objects.panels().every(({ panel }) => {
  const at = panel.object.getWorldPosition(volsfu.world.camera.position.clone()).project(volsfu.world.camera);
  return Math.abs(at.x) < 1 && Math.abs(at.y) < 1 && at.z < 1;
}));

const panels = (page) => page.evaluate(() => volsfu.world.objects.panels().map((p) => p.publication));

run(async () => {
  const ada = await open(`/?room=demo&identity=Ada&codec=${codec}&lines=360`, small);
  await until(ada, () => globalThis.volsfu?.conference.room);
  await ada.keyboard.press("p");
  await ada.getByRole("button", { name: "Webcam", exact: true }).click();
  await until(ada, () => volsfu.panel?.videos.publication("webcam")?.live);
  const webcam = await ada.evaluate(() => volsfu.panel.videos.publication("webcam").encodings.map((e) => [e.width, e.height]));

  const grace = await open("/?room=demo&identity=Grace", small);
  tell("webcam", { encodings: webcam, seen: await moves(grace, "webcam"), codecs: await codecsOf(grace) });

  // The user chooses the lowest quality in the inspector.
  await grace.keyboard.press("i");
  await grace.getByLabel("Quality of Ada, webcam").selectOption({ index: 2 });
  tell("lowest", await moves(grace, "webcam", webcam[0][0]));
  const row = await until(grace, () => [...document.querySelectorAll(".inspector tbody td")].map((c) => c.textContent).find((text) => /\d+ × \d+/.test(text)));
  tell("inspector", { row });
  await grace.keyboard.press("i");

  await ada.getByRole("button", { name: "Share screen" }).click();
  await until(ada, () => volsfu.panel.videos.publication("screen")?.live);
  const screen = await ada.evaluate(() => volsfu.panel.videos.publication("screen").encodings.map((e) => [e.width, e.height]));
  tell("screen", { encodings: screen, seen: await moves(grace, "screen"), order: await panels(grace), inView: await inView(grace) });

  // A panel that fills the view has more pixels on the display.
  const seat = await grace.evaluate(() => volsfu.world.viewpoint().position);
  await grace.keyboard.press("z");
  const near = await grace.evaluate(() => volsfu.world.viewpoint().position);
  if (long) {
    tell("enlarged", { seen: await moves(grace, "screen", screen.at(-1)[0]) });
  }
  await grace.keyboard.press("Escape");
  tell("returned", { seat, near, back: await grace.evaluate(() => volsfu.world.viewpoint().position) });

  // The browser's own button ends the track, and so does a click on the page's.
  await ada.evaluate(() => {
    const { track } = volsfu.panel.videos.publication("screen").opened;
    track.stop();
    track.dispatchEvent(new Event("ended"));
  });
  await until(grace, () => volsfu.world.objects.panels().length === 1);
  await ada.evaluate(() => (globalThis.webcam = volsfu.panel.videos.publication("webcam").opened.track));
  await ada.getByRole("button", { name: "Stop webcam" }).click();
  await until(grace, () => volsfu.world.objects.panels().length === 0);
  tell("ended", { track: await ada.evaluate(() => globalThis.webcam.readyState), notes: await ada.evaluate(() => document.querySelector(".videos .problem").textContent) });
});

/** Returns the codecs with which the page receives pictures. */
function codecsOf(page) {
  return page.evaluate(async () => {
    const reports = [...(await volsfu.conference.link.connection.peer.getStats()).values()];
    return reports.filter((s) => s.type === "inbound-rtp" && s.framesDecoded > 0).map((s) => reports.find((c) => c.id === s.codecId)?.mimeType);
  });
}
