import { describe, expect, it } from "vitest";
import { ChunkAssembler } from "../../src/media/chunks";
import { FrameError } from "../../src/media/frame";

const chunkSize = 64_000;

/** Returns the chunks of a frame, in order. */
function chunks(body: Uint8Array, { number = 1, timestamp = 3000, quality = 1, prefixed = false } = {}): ArrayBuffer[] {
  return Array.from({ length: Math.max(1, Math.ceil(body.length / chunkSize)) }, (_, index) => {
    const data = body.subarray(index * chunkSize, (index + 1) * chunkSize);
    const message = new Uint8Array(20 + data.length);
    const view = new DataView(message.buffer);
    view.setUint8(0, 1);
    view.setUint8(1, prefixed ? 1 : 0);
    view.setUint8(4, quality);
    view.setUint16(6, index);
    view.setUint32(8, number);
    view.setUint32(12, body.length);
    view.setUint32(16, timestamp);
    message.set(data, 20);
    return message.buffer;
  });
}

function body(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    bytes[i] = i % 251;
  }
  return bytes;
}

describe("ChunkAssembler", () => {
  it("puts frames together from chunks in any order", () => {
    const [first, second, third] = chunks(body(150_000), { number: 7, quality: 2 });
    const assembler = new ChunkAssembler();
    expect(assembler.take(third!)).toBeUndefined();
    expect(assembler.take(first!)).toBeUndefined();
    expect(assembler.take(first!)).toBeUndefined();
    const frame = assembler.take(second!);
    expect(frame).toMatchObject({ number: 7, quality: 2, length: 150_000, codec: "" });
    // Comparing 150,000 elements with an expectation each needs seconds on a busy machine.
    expect(frame!.data.every((v, i) => v === i % 251)).toBe(true);
  });

  it("takes frames of one chunk, and empty ones", () => {
    const assembler = new ChunkAssembler();
    for (const [i, length] of [0, 1, chunkSize].entries()) {
      expect(assembler.take(chunks(body(length), { timestamp: 3000 * i })[0]!)?.length).toBe(length);
    }
  });

  it("gives up a frame when a newer one is whole, whatever their numbers, also where timestamps wrap", () => {
    const assembler = new ChunkAssembler();
    const old = chunks(body(70_000), { number: 900, timestamp: 0xffff_fff0 });
    expect(assembler.take(old[0]!)).toBeUndefined();
    expect(assembler.take(chunks(body(10), { number: 3, timestamp: 0x10 })[0]!)?.number).toBe(3);
    expect(assembler.take(old[1]!)).toBeUndefined();
    expect(assembler.take(old[0]!)).toBeUndefined();
  });

  it("reads the prefix", () => {
    const prefixed = Uint8Array.from([0x64, 0x72, 0x63, 0x6f, 0xee, 0xaa, 0xe5, 0xf8, 0x40, 0, 0, 0, 9]);
    const frame = new ChunkAssembler().take(chunks(prefixed, { prefixed: true })[0]!);
    expect(frame).toMatchObject({ codec: "drco", captured: Date.UTC(2026, 10, 20, 15, 30, 0, 250) });
    expect([...frame!.data]).toEqual([9]);
  });

  it.each([
    ["nothing", () => new ArrayBuffer(0)],
    ["another version", () => { const [c] = chunks(body(5)); new DataView(c!).setUint8(0, 2); return c!; }],
    ["a chunk beyond the frame", () => { const [c] = chunks(body(5)); new DataView(c!).setUint16(6, 1); return c!; }],
    ["a chunk that was cut off", () => chunks(body(5))[0]!.slice(0, 24)],
    ["an absurd length", () => { const [c] = chunks(body(chunkSize)); new DataView(c!).setUint32(12, 0xffff_ffff); return c!; }],
    ["a prefix that is too short", () => chunks(body(5), { prefixed: true })[0]!],
  ])("refuses %s", (_, message) => {
    expect(() => new ChunkAssembler().take(message())).toThrow(FrameError);
  });

  it("refuses chunks that contradict those before", () => {
    const assembler = new ChunkAssembler();
    assembler.take(chunks(body(70_000))[0]!);
    expect(() => assembler.take(chunks(body(70_001))[1]!)).toThrow(FrameError);
  });
});
