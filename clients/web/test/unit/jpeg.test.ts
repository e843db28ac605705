import { beforeAll, describe, expect, it } from "vitest";
import { checkImage } from "../../src/decode/jpeg";
import { DecodeError } from "../../src/decode/points";
import { vectors } from "./vectors";

/** 240 points are a square of 16×16 pixels. */
const edge = 16;
const end = [0xff, 0xd9];
/** A comment, and empty tables. */
const others = [0xff, 0xfe, 0, 3, 0x21, 0xff, 0xc4, 0, 2];

/**
 * The pieces of an encoder's image: its start, the frame's segment, the scan's, and the coded data.
 */
let start: number[];
let frame: number[];
let scan: number[];
let data: number[];

beforeAll(async () => {
  const { data: bytes } = (await vectors("valid")).find((f) => f.codec === "drcj")!;
  const image = [...bytes.subarray(5 + new DataView(bytes.buffer).getUint32(0, true))];
  const at = (marker: number): number => image.findIndex((b, i) => b === 0xff && image[i + 1] === marker);
  [start, frame] = [image.slice(0, at(0xc0)), image.slice(at(0xc0), at(0xda))];
  [scan, data] = [image.slice(at(0xda), at(0xda) + 14), image.slice(at(0xda) + 14, -2)];
});

function check(...pieces: number[][]): void {
  checkImage("draco+jpeg", Uint8Array.from(pieces.flat()), edge, edge);
}

/** Returns a segment with one changed byte of its content. */
function changed(segment: number[], at: number, value: number): number[] {
  return segment.with(4 + at, value);
}

/** Returns a scan of one component with a range of coefficients. */
function scanOf(component: number, first = 0, last = 63, bits = 0): number[] {
  return [0xff, 0xda, 0, 8, 1, component, 0, first, last, bits];
}

describe("images", () => {
  it("of encoders are passed, and those with tables, comments, restarts and bytes of ff", () => {
    check(start, frame, scan, data, end);
    check(start, others, frame, others, scan, data, others, end);
    check(start, frame, scan, [1, 0xff, 0, 0xff, 0xd0, 2, 0xff, 0xd7, 3, 0xff, 0xff, 0, 4, 0xff], end);
  });

  it.each<[string, () => number[][], string]>([
    ["a scan of one component", () => [frame, scanOf(1), data, end], "a scan of 1 components"],
    ["a scan for each component", () => [frame, scanOf(1), data, scanOf(2), data, scanOf(3), data, end], "a scan of 1 components"],
    ["a scan that is too long", () => [frame, [...scan.with(3, 13), 0], data, end], "a scan of other components"],
    ["a scan of luma three times", () => [frame, changed(changed(scan, 3, 1), 5, 1), data, end], "a scan of other components"],
    ["a scan of a component that is not there", () => [frame, changed(scan, 1, 9), data, end], "a scan of other components"],
    ["a scan of means", () => [frame, changed(scan, 8, 0), data, end], "a scan of other components or of some coefficients"],
    ["a scan without means", () => [frame, changed(scan, 7, 1), data, end], "a scan of other components or of some coefficients"],
    ["a scan of some bits", () => [frame, changed(scan, 9, 0x01), data, end], "a scan of other components or of some coefficients"],
    ["a scan behind a whole one", () => [frame, scan, data, scan, data, end], "a second scan"],
    ["100 scans", () => [frame, ...Array.from({ length: 100 }, () => [...scan, ...data]), end], "a second scan"],
    ["a scan behind tables behind a whole one", () => [frame, scan, data, others, scanOf(1), data, end], "a second scan"],
    ["a progressive image", () => [frame.with(1, 0xc2), changed(scan, 8, 0), data, scanOf(1, 1, 63), data, end], "a segment ff c2"],
    ["a progressive frame behind a scan", () => [frame, scan, data, frame.with(1, 0xc2), scanOf(1, 1, 63), data, end], "a segment ff c2"],
    ["a frame behind a scan", () => [frame, scan, data, frame, scan, data, end], "a second frame"],
    ["a scan without a frame", () => [scan, data, end], "a scan without a frame"],
    ["no scan", () => [frame, end], "no whole segment"],
    ["no end", () => [frame, scan, data], "no whole segment"],
    ["half an end", () => [frame, scan, data, [0xff]], "no whole segment"],
    ["something behind the end", () => [frame, scan, data, end, [0]], "1 bytes behind the end"],
  ])("with %s are refused", (_, pieces, why) => {
    const refused = (): void => check(start, ...pieces());
    expect(refused).toThrow(DecodeError);
    expect(refused).toThrow(why);
  });
});
