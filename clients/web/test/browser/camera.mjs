// Publishes the picture of a depth camera until the user stops: the camera is then released.

import { goOn, open, rest, run, tell, until } from "./visit.mjs";

const [codec] = rest;

run(async () => {
  const lens = "arrangement=depth-left&coding=near-bright&near=1&far=3&fov=60&height=1.2";
  const page = await open(`/?room=demo&identity=page&publish=camera&codec=${codec}&${lens}&points=2000&fps=5&tiles=1&qualities=high`, { viewport: { width: 320, height: 240 } });
  await until(page, () => globalThis.volsfu?.panel?.publisher?.state().live);
  tell("live");
  await goOn();
  await page.evaluate(() => (globalThis.camera = volsfu.panel.pictures.stream.getVideoTracks()[0]));
  await page.getByRole("button", { name: "Stop" }).focus();
  await page.keyboard.press("Enter");
  tell("stopped", { camera: await page.evaluate(() => globalThis.camera.readyState) });
});
