// JPEG images of colours: the permitted forms, and the tables that "drcj" and "rgbd" omit, which both
// sides know (Rec. ITU-T T.81, annex K).

import { DecodeError } from "./points";

/** Quantisation of luma and chroma (tables K.1 and K.2), in the order of files. */
const quantisation = [
  [
    16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60, 57, 51,
    56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87, 95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
  ],
  [17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, ...new Array<number>(50).fill(99)],
] as const;

/**
 * Codes of differences and coefficients (tables K.3 to K.6): the class and number of a table, the
 * number of codes of each length, and their values.
 */
const codes = [
  ["00", "00010501010101010100000000000000", "000102030405060708090a0b"],
  [
    "10", "0002010303020403050504040000017d",
    "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a434445464748494a53545556" +
      "5758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6" +
      "d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa",
  ],
  ["01", "00030101010101010101010000000000", "000102030405060708090a0b"],
  [
    "11", "00020102040403040705040400010277",
    "000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a262728292a35363738393a434445464748494a535455" +
      "565758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4" +
      "d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa",
  ],
] as const;

function bytesOf(hex: string): number[] {
  return hex.match(/../g)!.map((pair) => parseInt(pair, 16));
}

function segment(marker: number, content: readonly number[]): number[] {
  const length = content.length + 2;
  return [0xff, marker, length >> 8, length & 255, ...content];
}

const defineQuantisation = 0xdb;
const defineCodes = 0xc4;
const startOfFrame = 0xc0;
const startOfScan = 0xda;
const startOfImage = 0xd8;
const endOfImage = 0xd9;
const restartInterval = 0xdd;
const firstRestart = 0xd0;
const lastRestart = 0xd7;
const application = 0xe0;
const comment = 0xfe;
/**
 * The length of a frame's segment with three components: 8 bytes, and 3 for each. A scan's segment
 * has 6, and 2 for each.
 */
const frameBytes = 17;
const scanBytes = 12;

/** All tables for a quality of 1 to 100, scaled as libjpeg does. */
export function tablesOf(quality: number): Uint8Array {
  const scale = quality < 50 ? Math.floor(5000 / quality) : 200 - 2 * quality;
  const scaled = (v: number): number => Math.min(Math.max(Math.floor((v * scale + 50) / 100), 1), 255);
  return Uint8Array.from([
    ...quantisation.flatMap((table, number) => segment(defineQuantisation, [number, ...table.map(scaled)])),
    ...codes.flatMap(([name, counts, values]) => segment(defineCodes, [...bytesOf(name), ...bytesOf(counts), ...bytesOf(values)])),
  ]);
}

/** Completes images without tables. It keeps the tables of the qualities that it has seen. */
export class Tables {
  private readonly known = new Map<number, Uint8Array>();

  /** Returns a file: the image with all tables of a quality of 1 to 100 behind its start. */
  complete(image: Uint8Array, quality: number): Uint8Array<ArrayBuffer> {
    let tables = this.known.get(quality);
    if (!tables) {
      tables = tablesOf(quality);
      this.known.set(quality, tables);
    }
    const file = new Uint8Array(tables.length + image.length);
    file.set(image.subarray(0, 2));
    file.set(tables, 2);
    file.set(image.subarray(2), 2 + tables.length);
    return file;
  }
}

/**
 * Reports whether a segment may be before or after the scan: tables, restart intervals, and
 * metadata.
 */
function isOther(marker: number): boolean {
  return marker === defineQuantisation || marker === defineCodes || marker === restartInterval || marker === comment || (marker >= application && marker < application + 16);
}

/** Sampling of the three components: luma whole, chroma halved in both directions. */
const sampling = [0x22, 0x11, 0x11];

const commentHead = 4;
/** The longest content of a segment, whose length has 16 bits and counts itself. */
const longestContent = 65_535 - 2;

/** Lengthens an image by at least the number of bytes, with comments (COM) behind the start of the image. */
export function lengthen(image: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> {
  const segments = Math.ceil(bytes / (commentHead + longestContent));
  const content = Math.max(Math.ceil(bytes / Math.max(segments, 1)) - commentHead, 0);
  const added = segments * (commentHead + content);
  const longer = new Uint8Array(image.length + added);
  longer.set(image.subarray(0, 2));
  for (let at = 2; at < 2 + added; at += commentHead + content) {
    longer.set([0xff, comment, (content + 2) >> 8, (content + 2) & 255], at);
  }
  longer.set(image.subarray(2), 2 + added);
  return longer;
}

/**
 * Checks, before the browser decodes it, that an image has the single form that encoders of "drcj"
 * and "cwi1" produce: baseline with 8 bits, three components with halved chroma in one scan, and the exact
 * number of pixels. Such an image needs memory for its pixels only, and one pass. For progressive
 * images and several scans, a decoder would keep all coefficients and process all of them for each
 * scan. Throws a DecodeError.
 */
export function checkImage(codec: string, image: Uint8Array, width: number, height: number): void {
  const expected = `expected a baseline image of ${width}×${height} pixels with three components and halved chroma in one scan`;
  const refuse = (found: string): DecodeError => new DecodeError(`${codec}: ${found} in an image of ${image.length} bytes, ${expected}`);
  if (image[0] !== 0xff || image[1] !== startOfImage) {
    throw refuse("no start");
  }
  let frame: Uint8Array | undefined;
  let scanned = false;
  for (let at = 2; ; ) {
    const marker = image[at] === 0xff ? image[at + 1] : undefined;
    if (marker === endOfImage && scanned) {
      if (at + 2 < image.length) {
        throw refuse(`${image.length - at - 2} bytes behind the end`);
      }
      return;
    }
    const length = at + 3 < image.length ? image[at + 2]! * 256 + image[at + 3]! : 0;
    const next = at + 2 + length;
    if (marker === undefined || length < 2 || next > image.length) {
      throw refuse(`no whole segment at byte ${at}`);
    }
    const content = image.subarray(at + 4, next);
    at = next;
    if (marker === startOfScan) {
      if (!frame || scanned) {
        throw refuse(scanned ? "a second scan" : "a scan without a frame");
      }
      if (!isWholeScan(content, frame)) {
        throw refuse(content[0] === sampling.length ? "a scan of other components or of some coefficients" : `a scan of ${content[0]} components`);
      }
      scanned = true;
      at = behindData(image, at);
    } else if (marker === startOfFrame) {
      const size = [content[3]! * 256 + content[4]!, content[1]! * 256 + content[2]!];
      const components = sampling.every((factors, i) => content[7 + 3 * i] === factors);
      if (frame || length !== frameBytes || content[0] !== 8 || content[5] !== sampling.length || !components || size[0] !== width || size[1] !== height) {
        throw refuse(frame ? "a second frame" : `a frame of ${size.join("×")} pixels, ${content[5]} components of ${content[0]} bits`);
      }
      frame = content;
    } else if (!isOther(marker)) {
      throw refuse(`a segment ff ${marker.toString(16).padStart(2, "0")}`);
    }
  }
}

/** Reports whether a scan has all components of a frame (T.81, B.2.3), and all of their coefficients with all bits. */
function isWholeScan(scan: Uint8Array, frame: Uint8Array): boolean {
  const named = sampling.every((_, i) => sampling.some((_, j) => scan[1 + 2 * j] === frame[6 + 3 * i]));
  return scan.length === scanBytes - 2 && scan[0] === sampling.length && named && scan[7] === 0 && scan[8] === 63 && scan[9] === 0;
}

/**
 * Returns the end of the coded data of a scan: at a marker other than a restart. A zero after ff
 * means that ff is data, and several ff may precede a marker (T.81, B.1.1).
 */
function behindData(image: Uint8Array, from: number): number {
  for (let at = image.indexOf(0xff, from); at >= 0; at = image.indexOf(0xff, at + 1)) {
    const next = image[at + 1];
    if (next !== 0 && next !== 0xff && !(next! >= firstRestart && next! <= lastRestart)) {
      return at;
    }
  }
  return image.length;
}
