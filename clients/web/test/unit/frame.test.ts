import { describe, expect, it } from "vitest";
import { FrameError, parseFrame } from "../../src/media/frame";

const keyFrameHeader = "10 02 00 9d 01 2a 10 00 10 00";

function bytes(hex: string): ArrayBuffer {
  return Uint8Array.from(hex.trim().split(/\s+/), (b) => parseInt(b, 16)).buffer;
}

describe("parseFrame", () => {
  // The example of docs/payload.md.
  const small = `${keyFrameHeader} 11 01 00 00 00 01 00 00 00 00 03 e8 00 00 00 11  64 72 63 6f ee aa e5 f8 40 00 00 00 74 69 6c 65 21`;

  it("reads descriptor and prefix", () => {
    const frame = parseFrame(bytes(small));
    expect(frame).toMatchObject({ quality: 1, number: 1000, length: 17, codec: "drco" });
    expect(frame.captured).toBe(Date.UTC(2026, 10, 20, 15, 30, 0, 250));
    expect(new TextDecoder().decode(frame.data)).toBe("tile!");
  });

  it("reads VR2Gather's header in place of the prefix", () => {
    const body = "30 69 77 63 20 00 00 00 ba 2d 94 f9 a1 01 00 00" + " 00".repeat(32);
    const frame = parseFrame(bytes(`${keyFrameHeader} 10 00 00 00 00 01 00 00 00 00 03 ea 00 00 00 30 ${body}`));
    expect(frame).toMatchObject({ codec: "cwi0", captured: 1_795_188_600_250, number: 1002 });
    expect(frame.data.length).toBe(32);
  });

  it("takes a tile without points, with a prefix and without", () => {
    expect(parseFrame(bytes(`${keyFrameHeader} 10 00 00 00 00 01 00 00 00 00 00 05 00 00 00 00`)).data.length).toBe(0);
    const prefixed = parseFrame(bytes(`${keyFrameHeader} 11 00 00 00 00 01 00 00 00 00 00 05 00 00 00 0c 64 72 63 6f 00 00 00 00 00 00 00 00`));
    expect(prefixed.data.length).toBe(0);
    expect(prefixed.captured).toBeNaN();
  });

  it("knows seconds of the era that begins in 2036", () => {
    const frame = parseFrame(bytes(`${keyFrameHeader} 11 00 00 00 00 01 00 00 00 00 00 05 00 00 00 0c 64 72 63 6f 00 00 00 01 00 00 00 00`));
    expect(frame.captured).toBe(Date.UTC(2036, 1, 7, 6, 28, 17));
  });

  it.each([
    ["nothing", ""],
    ["a real key frame", "30 02 00 9d 01 2a 80 02 e0 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"],
    ["another version", small.replace(" 11 01", " 21 01")],
    ["a frame that was cut off", small.slice(0, -3)],
    ["a prefix that is too short", `${keyFrameHeader} 11 00 00 00 00 01 00 00 00 00 00 05 00 00 00 02 64 72`],
  ])("refuses %s", (_, hex) => {
    expect(() => parseFrame(bytes(hex))).toThrow(FrameError);
  });
});
