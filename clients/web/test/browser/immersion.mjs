// Shows a room in a simulated headset: a person appears, the head moves, a stick moves the wearer,
// and the server receives the position of the eye.

import { artefacts, blank, base, open, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open(blank, { viewport: { width: 800, height: 450 } });
  await page.addInitScript({ path: "node_modules/iwer/build/iwer.min.js" });
  await page.addInitScript(() => {
    globalThis.device = new IWER.XRDevice(IWER.metaQuest3);
    globalThis.device.installRuntime();
  });
  await page.goto(`${base}/?room=demo&identity=eye`);
  await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 20);
  await page.getByRole("button", { name: "VR" }).waitFor();
  await page.evaluate(() => {
    globalThis.looks = [];
    const { session } = volsfu.conference;
    const send = session.send.bind(session);
    session.send = (message) => {
      if (message.type === "viewpoint") {
        globalThis.looks.push(message);
      }
      return send(message);
    };
    const { drawn } = volsfu.world;
    volsfu.world.drawn = (now) => {
      globalThis.points = volsfu.world.renderer.info.render.points;
      drawn(now);
    };
  });
  const seat = await page.evaluate(() => volsfu.world.viewpoint());
  await page.keyboard.press("v");
  await until(page, () => volsfu.world.renderer.xr.isPresenting);
  const fresh = async () => {
    await page.evaluate(() => (globalThis.looks.length = 0));
    return until(page, () => globalThis.looks.at(-1));
  };
  const last = async (is, argument) => until(page, is, argument);
  await page.evaluate(() => device.position.set(0, 1.6, 0));
  await last(() => Math.abs((globalThis.looks.at(-1)?.position[1] ?? 0) - 1.6) < 0.01);
  const stood = await fresh();
  // Each eye has all points once both tiles have arrived at their highest quality.
  const points = await until(page, () => (globalThis.points >= 12000 ? globalThis.points : undefined));
  await page.screenshot({ path: `${artefacts}/immersed.png` });
  await page.evaluate(() => device.position.set(0.5, 1.2, 0));
  await last(() => Math.abs((globalThis.looks.at(-1)?.position[1] ?? 0) - 1.2) < 0.01);
  const moved = await fresh();
  await page.evaluate(() => device.controllers.left.updateAxes("thumbstick", 0, -1));
  await last((z) => globalThis.looks.at(-1)?.position[2] < z - 0.3, moved.position[2]);
  await page.evaluate(() => {
    device.controllers.left.updateAxes("thumbstick", 0, 0);
    device.controllers.right.updateAxes("thumbstick", 1, 0);
  });
  await last((y) => Math.abs(globalThis.looks.at(-1)?.orientation[1] - y) > 0.2, moved.orientation[1]);
  const decoded = await page.evaluate(() => volsfu.conference.meters.total.decoded);
  await until(page, (n) => volsfu.conference.meters.total.decoded > n + 10, decoded);
  tell("immersed", { seat, stood, moved, points });
  await page.keyboard.press("v");
  await until(page, () => !volsfu.world.renderer.xr.isPresenting);
  const back = await fresh();
  tell("back", { seat, back });
});
