// Speaks in an encrypted room: a page with the key hears the microphone, and pages with another key
// or without one are silent.

import { listen, open, publishWithSound, run, tell, until } from "./visit.mjs";

const small = { viewport: { width: 320, height: 240 } };

run(async () => {
  const page = await open("/?room=demo&identity=page&points=1000&fps=5&tiles=1&qualities=low#key=abc", small);
  await publishWithSound(page);
  const ear = await open("/?room=demo&identity=ear#key=abc", small);
  const { sounds } = await listen(ear);
  const loudness = await sounds();
  // The counts of a page are those of its last statistics, which follow the sound.
  await until(ear, () => volsfu.conference.encryption?.counts.get("page")?.opened > 0);
  tell("heard", { loudness, counts: await ear.evaluate(() => volsfu.conference.encryption.counts.get("page")) });
  for (const [identity, fragment] of [["wrong", "#key=abd"], ["none", ""]]) {
    const deaf = await open(`/?room=demo&identity=${identity}${fragment}`, small);
    const { silent } = await listen(deaf);
    await silent();
    await until(deaf, (name) => volsfu.conference.secrecy.states().get("page") === (name === "wrong" ? "wrong_key" : "no_key"), identity);
    // The microphone is still audible to others.
    await sounds();
    tell(identity, { loudness: await deaf.evaluate(() => globalThis.loudness()) });
    await deaf.context().close();
  }
});
