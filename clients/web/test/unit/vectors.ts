// The test vectors that the tests of Go's codecs also create and read (pkg/codec/codectest).

import { readFile } from "node:fs/promises";
import { vi } from "vitest";
import { cwi0 } from "../../src/decode/cwi0";
import { CWI1 } from "../../src/decode/cwi1";
import type { Draco } from "../../src/decode/draco";
import { DracoJPEG } from "../../src/decode/dracojpeg";
import { Labels } from "../../src/decode/labels";
import { Parts } from "../../src/decode/parts";
import type { Decoder } from "../../src/decode/points";
import { raw } from "../../src/decode/raw";
import { RGBD } from "../../src/decode/rgbd/rgbd";
import { Zstd } from "../../src/decode/zstd";

export interface Vector {
  codec: string;
  name: string;
  points: number;
  sum: number;
  data: Uint8Array<ArrayBuffer>;
}

const folder = new URL("../../../../pkg/codec/codectest/testdata/", import.meta.url);

/** Returns frames of all codecs that pages decode. Meshes are only for volpeer. */
export async function vectors(file: "hostile" | "valid"): Promise<Vector[]> {
  const frames = await parsed<(Omit<Vector, "data"> & { data: string })[]>(new URL(`${file}.json`, folder));
  const others = frames.filter((f) => f.codec !== "drcm").map((f) => ({ ...f, data: bytesOf(f.data) }));
  const rasters = (await rasterVectors()).filter((v) => (v.error === undefined) === (file === "valid") && !v.distorted);
  return [...others, ...rasters.map(({ name, data, points, position_sum }) => ({ codec: "rgbd", name, points: points ?? 0, sum: position_sum ?? 0, data: bytesOf(data) }))];
}

/** A frame of "rgbd" with the result of decoding: pkg/codec/rgbd, frames_test.go. */
export interface RasterVector {
  name: string;
  data: string;
  error?: string;
  points?: number;
  rect?: [number, number, number, number];
  depth_sum?: number;
  position_sum?: number;
  /** Other implementations may compute slightly different positions. */
  distorted?: boolean;
  center?: [number, number, number];
}

/** Returns the frames of the tests in Go, or the corpus of its fuzz test. */
export async function rasterVectors(file: "vectors" | "corpus" = "vectors"): Promise<RasterVector[]> {
  return parsed(new URL(`../../../../pkg/codec/rgbd/testdata/${file}.json`, import.meta.url));
}

async function parsed<T>(file: URL): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await readFile(file))) as T;
}

export function bytesOf(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Loads Draco's WebAssembly from its package. */
export async function loadDraco(): Promise<Draco> {
  const wasm = await readFile(new URL("../../node_modules/draco3d/draco_decoder.wasm", import.meta.url));
  vi.stubGlobal("fetch", async () => new Response(Uint8Array.from(wasm)));
  const { loadDraco } = await import("../../src/decode/draco");
  const draco = await loadDraco();
  vi.unstubAllGlobals();
  return draco;
}

/** Returns the decoders of a page, without helpers. */
export function decodersWith(draco: Decoder): ReadonlyMap<string, Decoder> {
  const plain = new Map<string, Decoder>([["drco", draco], ["drcj", new DracoJPEG(draco)], ["zstd", new Zstd()], ["raw1", raw], ["cwi0", cwi0], ["cwi1", new CWI1()]]);
  const inner = new Map<string, Decoder>([...plain, ["labl", new Labels(plain)]]);
  return new Map<string, Decoder>([...inner, ["rgbd", new RGBD()], ["part", new Parts(inner, undefined)]]);
}

/** Replaces the browser's image decoder, which Node lacks. It counts the decoded images. */
export class FakeImages {
  decoded = 0;

  install(): void {
    vi.stubGlobal("OffscreenCanvas", class {
      width = 0;
      height = 0;
      getContext(): object {
        return { drawImage: () => {}, getImageData: (_x: number, _y: number, width: number, height: number) => ({ data: new Uint8ClampedArray(4 * width * height) }) };
      }
    });
    vi.stubGlobal("createImageBitmap", async () => {
      this.decoded++;
      return { close: () => {} };
    });
  }
}
