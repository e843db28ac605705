// The tables of JPEG that images of "drcj" leave out, since both sides know them (Rec. ITU-T T.81, annex K).

/** Quantisation of luma and chroma (tables K.1 and K.2), in the order of files. */
const quantisation = [
  [
    16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60, 57, 51,
    56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87, 95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
  ],
  [17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, ...new Array<number>(50).fill(99)],
] as const;

/** Codes of differences and coefficients (tables K.3 to K.6): the class and number of a table, how many codes there are of each length, and what they mean. */
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

/** All tables for a quality of 1 to 100, scaled as libjpeg does. */
export function tablesOf(quality: number): Uint8Array {
  const scale = quality < 50 ? Math.floor(5000 / quality) : 200 - 2 * quality;
  const scaled = (v: number): number => Math.min(Math.max(Math.floor((v * scale + 50) / 100), 1), 255);
  return Uint8Array.from([
    ...quantisation.flatMap((table, number) => segment(defineQuantisation, [number, ...table.map(scaled)])),
    ...codes.flatMap(([name, counts, values]) => segment(defineCodes, [...bytesOf(name), ...bytesOf(counts), ...bytesOf(values)])),
  ]);
}

/** The width and height that an image says it has, undefined where it is no baseline image. */
export function sizeOf(image: Uint8Array): { width: number; height: number } | undefined {
  for (let at = 2; at + 9 < image.length && image[at] === 0xff; ) {
    const marker = image[at + 1]!;
    if (marker === startOfFrame) {
      return { height: image[at + 5]! * 256 + image[at + 6]!, width: image[at + 7]! * 256 + image[at + 8]! };
    }
    if (marker === startOfScan) {
      return undefined;
    }
    at += 2 + image[at + 2]! * 256 + image[at + 3]!;
  }
  return undefined;
}
