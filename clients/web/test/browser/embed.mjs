// Pages of two other servers embed the viewer and the console in frames, and send requests with a
// token: one page of an allowed origin, and one of another.

import { base, openForeign, rest, run, tell, until } from "./visit.mjs";

const [friend, stranger, operator] = rest;

run(async () => {
  for (const [name, url] of Object.entries({ friend, stranger })) {
    const page = await openForeign(url);
    const answers = await page.evaluate(async ([base, token]) => {
      const headers = { Authorization: `Bearer ${token}` };
      const ask = (path, method) => fetch(base + path, { method, headers }).then((r) => r.status, () => "refused");
      return [await ask("/v1/rooms", "GET"), await ask("/admin/v1/rooms", "GET"), await ask("/admin/v1/rooms/attic", "DELETE")].join(" ");
    }, [base, operator]);
    const frame = (id) => page.frames().find((f) => f.name() === id);
    if (name === "friend") {
      await until(frame("viewer"), () => globalThis.volsfu?.conference.room);
    }
    tell(name, { answers, viewer: frame("viewer").url().split("#")[0], console: frame("console").url() });
  }
});
