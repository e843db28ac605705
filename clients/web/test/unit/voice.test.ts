import { afterEach, describe, expect, it, vi } from "vitest";
import type { Conference } from "../../src/viewer/conference";
import { openMicrophone, Voice } from "../../src/publish/voice";
import type { ClientMessage } from "../../src/signal/messages";

afterEach(() => vi.unstubAllGlobals());

/** Returns a microphone, and a conference that records the calls. */
function begin() {
  const track = { enabled: true, stopped: false, onended: null as (() => void) | null, stop: () => void (track.stopped = true) };
  const sound = new Map<string, unknown>();
  const said: ClientMessage[] = [];
  const lost: string[] = [];
  const conference = {
    feed: (name: string, of: { track: () => unknown } | undefined) => (of ? sound.set(name, of.track()) : sound.delete(name)),
    publish: () => {},
    unpublish: () => {},
    mute: (publication: string, muted: boolean) => said.push({ type: "mute", publication, muted }),
    retract: (publication: string) => said.push({ type: "unpublish", publication }),
    session: { send: (m: ClientMessage) => said.push(m) > 0 },
  } as unknown as Conference;
  const voice = new Voice(conference, track as unknown as MediaStreamTrack, (why) => lost.push(why));
  return { voice, track, sound, said, lost };
}

describe("Voice", () => {
  it("publishes the microphone's track, which is muted and given back", () => {
    const { voice, track, sound, said } = begin();
    expect([...sound.values()]).toEqual([track]);
    voice.entered(true, false);
    expect(said[0]).toMatchObject({ type: "publish", id: "voice/1", publication: { name: "voice", kind: "audio" } });
    expect(voice.handle({ type: "ok", id: "voice/1" })).toBe(true);
    voice.on = false;
    expect([voice.on, track.enabled, track.stopped]).toEqual([false, false, false]);
    expect(said.at(-1)).toEqual({ type: "mute", publication: "voice", muted: true });
    // A new session knows nothing of the muting.
    voice.entered(true, false);
    expect(voice.handle({ type: "ok", id: "voice/2" })).toBe(true);
    expect(said.at(-1)).toEqual({ type: "mute", publication: "voice", muted: true });
    voice.end();
    expect([track.stopped, sound.size]).toEqual([true, 0]);
    expect(said.at(-1)).toEqual({ type: "unpublish", publication: "voice" });
  });

  it("is announced once, and again where the session was lost", () => {
    const { voice, said } = begin();
    voice.entered(true, false);
    voice.handle({ type: "ok", id: "voice/1" });
    voice.entered(true, true);
    expect(said).toHaveLength(1);
    voice.entered(true, false);
    expect(voice.handle({ type: "error", id: "voice/2", code: "exists", message: "" })).toBe(true);
    expect(said).toHaveLength(2);
  });

  it("says why nobody can hear it", () => {
    const refused = begin();
    refused.voice.entered(true, false);
    refused.voice.handle({ type: "error", id: "voice/1", code: "forbidden", message: "the token does not grant it" });
    expect(refused.lost).toEqual(["The server rejected the microphone: the token does not grant it"]);
    refused.voice.end();
    expect(refused.said).toHaveLength(1);

    const taken = begin();
    taken.voice.entered(true, false);
    taken.track.onended!();
    expect(taken.lost[0]).toContain("The microphone was disconnected");
    taken.voice.end();
    expect(taken.track.onended).toBeNull();
    expect(taken.said.at(-1)).toEqual({ type: "unpublish", publication: "voice" });
  });
});

describe("openMicrophone", () => {
  it.each([
    ["NotAllowedError", "was not allowed"], ["NotFoundError", "There is no microphone"], ["NotReadableError", "another program"], ["AbortError", "cannot be used"],
  ])("says what %s means", async (name, words) => {
    vi.stubGlobal("isSecureContext", true);
    vi.stubGlobal("navigator", { mediaDevices: { getUserMedia: () => Promise.reject(new DOMException("no", name)) } });
    await expect(openMicrophone()).rejects.toThrow(words);
  });

  it("says that pages over http have none", async () => {
    vi.stubGlobal("isSecureContext", false);
    await expect(openMicrophone()).rejects.toThrow("Open it over https");
  });
});
