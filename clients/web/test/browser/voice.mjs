// Speaks: sound of one page's microphone is audible in another page, is silent while the microphone
// is off, and ends with the publication.

import { goOn, listen, open, publishWithSound, run, tell, until } from "./visit.mjs";

const small = { viewport: { width: 320, height: 240 } };

run(async () => {
  const page = await open("/?room=demo&identity=page&points=1000&fps=5&tiles=1&qualities=low", small);
  await publishWithSound(page);
  tell("live");

  const ear = await open("/?room=demo&identity=ear", small);
  const { sounds, silent } = await listen(ear);
  tell("heard", { loudness: await sounds() });
  await goOn();

  const mute = page.locator(".self .acts button").last();
  await mute.focus();
  await page.keyboard.press("Enter");
  await silent();
  tell("muted", { button: await mute.textContent() });
  await goOn();
  await page.keyboard.press("Enter");
  tell("heard again", { loudness: await sounds() });

  await page.evaluate(() => (globalThis.microphone = volsfu.panel.voice.track));
  await page.getByRole("button", { name: "Stop" }).focus();
  await page.keyboard.press("Enter");
  await until(ear, () => volsfu.conference.participants.get("page")?.publications.length === 0);
  tell("stopped", { microphone: await page.evaluate(() => globalThis.microphone.readyState) });
  // The keyboard focus is where it was, and then in the space.
  const form = await page.evaluate(() => document.activeElement?.closest("form")?.className);
  await page.keyboard.press("p");
  await until(page, () => document.querySelector(".self").hidden);
  tell("closed", { form, focus: await page.evaluate(() => document.activeElement?.id) });
});
