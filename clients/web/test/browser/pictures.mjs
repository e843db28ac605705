// Publishes a webcam and a screen: another page shows moving pictures of the right sizes on panels,
// enlarges a panel, chooses a quality, and sees them end.

import { goOn, open, run, tell, until } from "./visit.mjs";

const small = { viewport: { width: 640, height: 360 } };

/** Waits until a panel has shown five different pictures, and returns the size. */
async function moves(page, name) {
  return until(page, (publication) => {
    const panel = globalThis.volsfu?.world.objects.panels().find((p) => p.publication === publication)?.panel;
    if (!panel?.picture) {
      return undefined;
    }
    const canvas = new OffscreenCanvas(64, 36);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(panel.video, 0, 0, 64, 36);
    const sum = context.getImageData(0, 0, 64, 36).data.reduce((s, v) => (Math.imul(s, 31) + v) | 0, 0);
    const sums = (panel.sums ??= new Set());
    sums.add(sum);
    return sums.size >= 5 ? panel.picture : undefined;
  }, name);
}

run(async () => {
  const ada = await open("/?room=demo&identity=Ada", small);
  await until(ada, () => globalThis.volsfu?.conference.room);
  await ada.keyboard.press("p");
  await ada.getByRole("button", { name: "Webcam", exact: true }).click();
  await until(ada, () => volsfu.panel.videos.publication("webcam")?.live);
  tell("webcam live");

  const grace = await open("/?room=demo&identity=Grace", small);
  tell("webcam moves", await moves(grace, "webcam"));

  await ada.getByRole("button", { name: "Share screen" }).click();
  await until(ada, () => volsfu.panel.videos.publication("screen")?.live);
  tell("screen moves", await moves(grace, "screen"));
  await grace.screenshot({ path: "/tmp/b29/first.png" });
  await ada.screenshot({ path: "/tmp/b29/ada.png" });
  tell("facts", await grace.evaluate(() => ({
    slots: [...volsfu.conference.slots].map(({ mid, track, quality, reason }) => ({ mid, track, quality, reason })),
    bandwidth: volsfu.conference.bandwidth,
  })));
  tell("sent", await ada.evaluate(() => ["webcam", "screen"].map((k) => volsfu.panel.videos.publication(k).state())));
  await goOn();
});
