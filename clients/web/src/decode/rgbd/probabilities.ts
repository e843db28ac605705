// The adaptive probabilities of mask and depths of "rgbd". Each is the mean of two estimates of a
// decision being 0, in units of 2^-16: one follows the last 16 decisions or so; the other begins as
// a mean of all decisions seen, and follows the last 128 or so later.

const half = 1 << 15;
export const fastRate = 4;
const slowRate = 7;
/** The number of decisions after which the slow estimate has its final rate. */
export const rareDecisions = (1 << (slowRate - 1)) + 1;

/** The shift of the slow estimate by the number of decisions seen. */
export const slowRates = Uint8Array.from({ length: rareDecisions + 1 }, (_, seen) => {
  let rate = 2;
  while (rate < slowRate && 1 << rate < seen + 2) {
    rate++;
  }
  return rate;
});

/** The number of contexts of a residual: twelve levels of activity, inside of a surface or at an edge. */
export const levels = 12;
export const contexts = 2 * levels;
/** The number of bits of the largest residual. */
export const maxLength = 16;

// The places of the probabilities.
/** By the kinds of the blocks to the left and above. */
export const mixed = 0;
export const all = mixed + 9;
/** By ten neighbours. */
export const pixels = all + 9;
/** By pattern × contexts + context. */
export const zeros = pixels + 1024;
/** By context × maxLength + length. */
export const lengths = zeros + 8 * contexts;
/** By 4 × (context × (maxLength + 1) + length): the bit behind the leading one, and the next after a 0 and after a 1. */
export const mantissas = lengths + contexts * maxLength;
/** By the signs of the residuals to the left and above. */
export const signs = mantissas + 4 * contexts * (maxLength + 1);
const count = signs + 9;

/** The first estimates of pixels of the mask, by the number of their four nearest neighbours with a depth. */
const maskStarts = [61440, 49152, half, 16384, 4096];

const starts = new Uint16Array(count).fill(half);
for (let context = 0; context < 1024; context++) {
  starts[pixels + context] = maskStarts[(context & 1) + ((context >> 1) & 1) + ((context >> 2) & 1) + ((context >> 3) & 1)]!;
}

export class Probabilities {
  readonly fast = new Uint16Array(count);
  readonly slow = new Uint16Array(count);
  readonly seen = new Uint8Array(count);

  reset(): void {
    this.fast.set(starts);
    this.slow.set(starts);
    this.seen.fill(0);
  }
}
