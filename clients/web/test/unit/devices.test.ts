import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { playSound } from "../../src/client/devices";
import type { Room, RoomEvents, SoundLine } from "../../src/client/room";

describe("playSound", () => {
  let playing: Set<unknown>;

  beforeEach(() => {
    playing = new Set();
    vi.stubGlobal("MediaStream", class {
      constructor(readonly tracks: unknown[]) {}
    });
    vi.stubGlobal("Audio", class {
      srcObject: { tracks: unknown[] } | null = null;
      async play(): Promise<void> {
        playing.add(this.srcObject!.tracks[0]);
      }
      pause(): void {
        playing.delete(this.srcObject?.tracks[0]);
      }
    });
  });
  afterEach(() => vi.unstubAllGlobals());

  it("plays the lines of a room until they end", () => {
    const listeners: Partial<RoomEvents> = {};
    const line = (id: string, track: string): SoundLine => ({ id, track: track as unknown as MediaStreamTrack, participant: undefined, publication: undefined });
    const room = {
      soundLines: [line("1", "first")],
      on: <K extends keyof RoomEvents>(event: K, listener: RoomEvents[K]) => {
        listeners[event] = listener;
        return () => delete listeners[event];
      },
    };
    const end = playSound(room as unknown as Room);
    listeners.sound!(line("2", "second"));
    expect([...playing]).toEqual(["first", "second"]);
    listeners.soundEnded!("1");
    listeners.soundEnded!("7");
    expect([...playing]).toEqual(["second"]);
    listeners.sound!(line("2", "third"));
    expect([...playing]).toEqual(["third"]);
    end();
    expect([[...playing], Object.keys(listeners)]).toEqual([[], []]);
  });
});
