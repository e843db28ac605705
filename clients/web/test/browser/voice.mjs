// Speaks: sound of one page's microphone is audible in another page, is silent while the microphone
// is off, and ends with the publication.

import { goOn, open, publishWithSound, run, tell, until } from "./visit.mjs";

const small = { viewport: { width: 320, height: 240 } };

run(async () => {
  const page = await open("/?room=demo&identity=page&points=1000&fps=5&tiles=1&qualities=low", small);
  await publishWithSound(page);
  tell("live");

  const ear = await open("/?room=demo&identity=ear", small);
  await until(ear, () => globalThis.volsfu?.conference.room);
  await ear.keyboard.press("m");
  // The output at the position of the speaker is measured: the last eighth of a second and more.
  await until(ear, () => {
    const mid = [...volsfu.speakers()].find((s) => s.participant === "page")?.mid;
    const voice = mid !== undefined && volsfu.sound.voices.get(mid);
    if (!volsfu.sound.on || !voice) {
      return undefined;
    }
    const analyser = new AnalyserNode(volsfu.sound.context, { fftSize: 8192 });
    voice.panner.connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    globalThis.loudness = () => {
      analyser.getFloatTimeDomainData(samples);
      return Math.sqrt(samples.reduce((sum, v) => sum + v * v, 0) / samples.length);
    };
    return true;
  });
  /**
   * Sound is louder than a thousandth of full scale, which encoded silence never is; silence is
   * quieter than a tenth of that for twenty samples, longer than pauses between syllables.
   */
  const sounds = () => until(ear, () => (globalThis.loudness() > 1e-3 ? globalThis.loudness() : undefined));
  const silent = async () => {
    await ear.evaluate(() => (globalThis.quiet = 0));
    await until(ear, () => (globalThis.quiet = globalThis.loudness() < 1e-4 ? globalThis.quiet + 1 : 0) >= 20);
  };
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
