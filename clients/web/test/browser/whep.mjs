// A page of another server plays a participant by WHEP, as a player that is not part of this
// project would: it posts an offer, sends its candidates by PATCH, plays the answer's tracks in a
// video element, and ends the session by DELETE.

import { openForeign, rest, run, tell, until } from "./visit.mjs";

// frames is the number of frames that are decoded between two samples.
const [pages, endpoint, frames, token] = rest;

run(async () => {
  const page = await openForeign(pages);
  await page.evaluate(async ([endpoint, token]) => {
    const start = performance.now();
    const pc = new RTCPeerConnection();
    const video = document.createElement("video");
    Object.assign(video, { autoplay: true, muted: true, srcObject: new MediaStream() });
    document.body.append(video);
    pc.ontrack = ({ track }) => video.srcObject.addTrack(track);
    for (const kind of ["video", "audio"]) {
      pc.addTransceiver(kind, { direction: "recvonly" });
    }
    const candidates = [];
    pc.onicecandidate = ({ candidate }) => candidate?.candidate && candidates.push(`a=${candidate.candidate}\r\n`);
    await pc.setLocalDescription();
    const answer = await fetch(endpoint, {
      method: "POST", headers: { "Content-Type": "application/sdp", Authorization: `Bearer ${token}` },
      body: pc.localDescription.sdp,
    });
    if (answer.status !== 201) {
      throw new Error(`${answer.status}: ${await answer.text()}`);
    }
    const session = new URL(answer.headers.get("Location"), endpoint);
    await pc.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    const patch = await fetch(session, {
      method: "PATCH", body: `a=mid:0\r\n${candidates.join("")}`,
      headers: { "Content-Type": "application/trickle-ice-sdpfrag", "If-Match": answer.headers.get("ETag") },
    });
    globalThis.whep = { pc, video, session, start, patched: patch.status };
    video.requestVideoFrameCallback(() => (globalThis.whep.first = performance.now() - start));
  }, [endpoint, token]);
  await until(page, () => globalThis.whep.first);
  const sample = () => page.evaluate(async () => {
    const { pc, video, first, patched } = globalThis.whep;
    const reports = [...(await pc.getStats()).values()].filter((r) => r.type === "inbound-rtp");
    const of = (kind) => reports.find((r) => r.kind === kind) ?? {};
    const { framesDecoded, framesReceived, framesDropped, freezeCount, totalFreezesDuration, packetsLost, pliCount } = of("video");
    return {
      at: performance.now(), first, patched, width: video.videoWidth, height: video.videoHeight, framesDecoded, framesReceived,
      framesDropped, freezeCount, totalFreezesDuration, packetsLost, pliCount, soundPackets: of("audio").packetsReceived ?? 0,
      shown: video.getVideoPlaybackQuality().totalVideoFrames,
    };
  });
  const before = await sample();
  tell("playing", before);
  await page.evaluate(async (decoded) => {
    for (;;) {
      const reports = [...(await globalThis.whep.pc.getStats()).values()];
      if (reports.some((r) => r.type === "inbound-rtp" && r.framesDecoded >= decoded)) {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }, before.framesDecoded + Number(frames));
  tell("played", await sample());
  const status = await page.evaluate(async () => (await fetch(globalThis.whep.session, { method: "DELETE" })).status);
  tell("ended", { status });
});
