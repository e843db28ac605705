import { describe, expect, it } from "vitest";
import type { LineStatistics } from "../../src/media/connection";
import { wrapped } from "../../src/media/frame";
import { isPicture, pictureSource } from "../../src/media/picture";
import { fit } from "../../src/scene/panel";
import { panelShape, rowOf } from "../../src/scene/rows";
import { arcSeats, Seating } from "../../src/scene/seating";
import { shortened } from "../../src/scene/label";
import type { Publication, TileRef } from "../../src/signal/messages";
import { PictureLines } from "../../src/viewer/pictures";
import { refusalOf, sentenceOf } from "../../src/viewer/secrecy";

const picture = (name: string, source?: "camera" | "screen", [width, height] = [0.8, 0.45]): Publication => ({
  name, kind: "video", mode: "alternatives", codec: { mime_type: "video/VP8", clock_rate: 90_000 }, ...(source ? { picture: { source } } : {}),
  tiles: [{ box: { min: [0, 1, 0], max: [width!, 1 + height!, 0] } }], qualities: [{ bitrate_bps: 1 }],
});
const ref = (participant: string, publication: string): TileRef => ({ participant, publication, tile: 0 });

describe("isPicture", () => {
  it.each([["video/VP8", true], ["video/h264", true], ["video/volumetric", false], ["audio/opus", false]])("knows %s", (mime_type, is) => {
    expect(isPicture({ ...picture("a"), kind: mime_type.startsWith("audio") ? "audio" : "video", codec: { mime_type, clock_rate: 90_000 } })).toBe(is);
  });

  it("takes a picture of unknown source for a camera", () => {
    expect([picture("a"), picture("b", "screen")].map(pictureSource)).toEqual(["camera", "screen"]);
  });
});

describe("wrapped", () => {
  it("distinguishes wrapped frames from those of codecs", () => {
    expect(wrapped(new Uint8Array([0x10, 2, 0, 0x9d, 1, 0x2a, 0x10, 0, 0x10, 0, 7]))).toBe(true);
    // A key frame of 320 × 180, a delta frame, and H264.
    expect(wrapped(new Uint8Array([0x50, 0x42, 0, 0x9d, 1, 0x2a, 0x40, 1, 0xb4, 0]))).toBe(false);
    expect(wrapped(new Uint8Array([0x31, 5]))).toBe(false);
    expect(wrapped(new Uint8Array([0, 0, 0, 1, 0x67, 0x42, 0, 0x1f, 0x10, 0]))).toBe(false);
  });
});

describe("PictureLines", () => {
  const begin = () => {
    const shown: string[] = [];
    const lines = new PictureLines((of, track) => shown.push(`${of.participant}/${of.publication} ${track ? (track as unknown as string) : "–"}`));
    const line = (mid: string, track: string): void => lines.line(mid, track as unknown as MediaStreamTrack);
    return { lines, line, shown };
  };

  it("shows a publication as soon as its line and its assignment exist, in either order", () => {
    const { lines, line, shown } = begin();
    lines.carry("1", ref("ada", "webcam"));
    line("1", "track 1");
    line("2", "track 2");
    lines.carry("2", ref("ada", "screen"));
    lines.carry("2", ref("ada", "screen"));
    expect(shown).toEqual(["ada/webcam track 1", "ada/screen track 2"]);
    lines.carry("1", undefined);
    expect(shown.at(-1)).toBe("ada/webcam –");
  });

  it("continues on another line, whose track is the newer one", () => {
    const { lines, line, shown } = begin();
    line("1", "track 1");
    line("2", "track 2");
    lines.carry("1", ref("ada", "webcam"));
    lines.carry("2", ref("ada", "webcam"));
    lines.carry("1", undefined);
    expect(shown).toEqual(["ada/webcam track 1", "ada/webcam track 2"]);
  });

  it("shows a publication that returns under the same name on the same line", () => {
    const { lines, line, shown } = begin();
    line("1", "track 1");
    lines.carry("1", ref("ada", "webcam"));
    lines.forget("ada", "webcam");
    lines.carry("1", ref("ada", "webcam"));
    expect(shown).toEqual(["ada/webcam track 1", "ada/webcam –", "ada/webcam track 1"]);
    lines.clear();
    lines.carry("1", ref("ada", "webcam"));
    line("1", "track of the next connection");
    expect(shown.slice(3)).toEqual(["ada/webcam –", "ada/webcam track of the next connection"]);
  });

  it("has the rate between two readings", () => {
    const { lines } = begin();
    const pictures = { decoded: 10, fps: 30, width: 640, height: 360, freezes: 1, frozenSeconds: 0.5, wait: 5, decode: 2 };
    const line = (bytes: number): LineStatistics => ({ packets: 1, lost: 0, bytes, nacks: 0, pictures });
    expect(lines.figures("1", line(0), 0)).toBeUndefined();
    lines.carry("1", ref("ada", "webcam"));
    expect(lines.figures("1", { packets: 0, lost: 0, bytes: 0, nacks: 0 }, 0)).toBeUndefined();
    lines.figures("1", line(1000), 0);
    expect(lines.figures("1", line(2000), 500)).toMatchObject({ bps: 0, width: 640, freezes: 1 });
    expect(lines.figures("1", line(126_000), 1000)?.bps).toBe(1e6);
  });
});

describe("rowOf", () => {
  it("has screens to the left of the body and webcams to the right, whatever joined first", () => {
    const panels = [picture("webcam", "camera"), picture("screen", "screen", [1.6, 0.9])];
    const row = rowOf(true, panels);
    expect(rowOf(true, [...panels].reverse())).toEqual(row);
    const at = (name: string): number => row.panels.get(name)!;
    expect(at("screen")).toBeLessThan(row.body);
    expect(at("webcam")).toBeGreaterThan(row.body);
    // None overlaps another: half the widths, and a gap.
    expect(row.body - at("screen")).toBeGreaterThan((1.6 + 0.8) / 2);
    expect(at("webcam") - row.body).toBeGreaterThan((0.8 + 0.8) / 2);
  });

  it("has a webcam without a body in the middle, and a body alone in the usual place", () => {
    expect(rowOf(false, [picture("webcam")]).panels.get("webcam")).toBe(0);
    expect(rowOf(true, [])).toEqual({ width: 1.1, body: 0, panels: new Map() });
  });
});

describe("panelShape", () => {
  it("shows every size of a publisher at a size that fits the room", () => {
    const huge = panelShape(picture("screen", "screen", [160, 90]));
    expect(huge.scale * huge.size.width).toBeCloseTo(1.8, 6);
    expect(panelShape(picture("webcam")).scale).toBe(1);
    for (const size of [[0, 0], [NaN, 1], [-1, 1]] as [number, number][]) {
      expect(panelShape(picture("webcam", "camera", size))).toMatchObject({ size: { width: 0.8, height: 0.45 }, scale: 1 });
    }
  });
});

describe("arcSeats", () => {
  it("is before the viewer, and gives wide rows more of the arc", () => {
    const widths = [3.2, 1.1, 1.1, 2];
    const seats = arcSeats(widths).map((s) => s.position);
    for (let i = 1; i < widths.length; i++) {
      const distance = Math.hypot(seats[i]![0] - seats[i - 1]![0], seats[i]![2] - seats[i - 1]![2]);
      // The chord is a little shorter than the arc between two middles.
      expect(distance).toBeGreaterThan(((widths[i]! + widths[i - 1]!) / 2) * 0.9);
      expect(seats[i]![0]).toBeLessThan(seats[i - 1]![0]);
    }
    expect(seats.every(([, , z]) => z < 0)).toBe(true);
    expect(arcSeats([1.1])[0]!.position[0]).toBeCloseTo(0, 9);
  });
});

describe("Seating", () => {
  it("widens the place of a participant with panels", () => {
    const seating = new Seating();
    seating.join("ada");
    seating.join("grace");
    const before = seating.seats();
    expect([...before.values()]).toEqual(arcSeats([1.1, 1.1]));
    seating.join("grace", 3);
    expect([...seating.seats().values()]).toEqual(arcSeats([1.1, 3]));
    seating.join("grace");
    expect(seating.seats()).toEqual(before);
  });
});

describe("fit", () => {
  it("keeps the ratio within the panel", () => {
    expect(fit(2, { width: 1, height: 1 })).toEqual({ width: 1, height: 0.5 });
    expect(fit(0.5, { width: 1, height: 1 })).toEqual({ width: 0.5, height: 1 });
  });
});

describe("shortened", () => {
  it("cuts long names only", () => {
    expect(shortened("ada", (t) => t.length < 10)).toBe("ada");
    expect(shortened("a".repeat(500), (t) => t.length < 20)).toMatch(/^a{5,18}…$/);
    expect(shortened("ada", () => false)).toBe("a…");
  });
});

describe("refusalOf", () => {
  it("says that pictures cannot be encrypted", () => {
    expect(refusalOf(picture("webcam"), true)).toBe("picture");
    expect(refusalOf(picture("webcam"), false)).toBeUndefined();
    expect(sentenceOf("ada", "picture")).toContain("cannot be encrypted");
  });
});
