// Decodes the frames of the test, each as a line of JSON: it stores a frame, reports this, and
// decodes it on the next command.

import { collector, goOn, open, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open("/test/browser/decoders/");
  await until(page, () => typeof globalThis.decode === "function");
  const collect = await collector(page);
  tell("loaded");
  for (let line = await goOn(); line; line = await goOn()) {
    const { codec, data } = JSON.parse(line);
    await page.evaluate(([codec, data]) => hold(codec, data), [codec, data]);
    await collect();
    tell("held");
    await goOn();
    tell("decoded", await page.evaluate(() => decode()));
  }
});
