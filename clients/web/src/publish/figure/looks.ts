// The individual features of a person, and the resulting colours.

import { belt, eye, mouth } from "./body";
import { armAxis, armDirection, Bone, leftShoulder } from "./skeleton";
import type { Material } from "./solids";
import { dot, hash, length, mix, ramp, smoothStep, sub, texture, type Vector } from "./vector";

/** A colour in sRGB, 0 to 1 per channel. */
export type Shade = readonly [number, number, number];

/** One point of the body's surface at rest. */
export interface Sample {
  position: Vector;
  normal: Vector;
  /** 0 in a fold, 1 without anything that blocks light. */
  openness: number;
  bone: Bone;
  material: Material;
}

const skins: Shade[] = [[0.88, 0.69, 0.58], [0.93, 0.77, 0.67], [0.76, 0.56, 0.43], [0.55, 0.37, 0.27], [0.38, 0.25, 0.18]];
const hairs: Shade[] = [[0.22, 0.14, 0.09], [0.09, 0.07, 0.06], [0.45, 0.31, 0.17], [0.55, 0.53, 0.51], [0.36, 0.17, 0.08]];
const irises: Shade[] = [[0.27, 0.42, 0.55], [0.28, 0.17, 0.09], [0.31, 0.4, 0.26]];
const shirts: Shade[] = [[0.24, 0.42, 0.66], [0.86, 0.87, 0.88], [0.58, 0.2, 0.22], [0.26, 0.45, 0.36], [0.47, 0.45, 0.6], [0.8, 0.66, 0.38]];
const slacks: Shade[] = [[0.2, 0.21, 0.26], [0.19, 0.25, 0.4], [0.52, 0.46, 0.36], [0.33, 0.33, 0.34]];
const leathers: Shade[] = [[0.3, 0.19, 0.12], [0.1, 0.1, 0.11], [0.78, 0.78, 0.77]];

/** The channels of the noise for the looks. */
enum Channel { skin = 1, hair, iris, shirt, trousers, shoes, weave, style, grain, skinTexture, hairTexture, clothTexture, fold }

export class Looks {
  readonly longHair: boolean;
  private readonly skin: Shade;
  private readonly hair: Shade;
  private readonly iris: Shade;
  private readonly shirt: Shade;
  private readonly trousers: Shade;
  private readonly shoes: Shade;
  private readonly striped: boolean;

  constructor(private readonly seed: number) {
    const pick = <T>(channel: Channel, of: readonly T[]): T => of[Math.floor(hash(seed, channel, 0) * of.length)]!;
    this.longHair = pick(Channel.style, [true, false]);
    this.skin = pick(Channel.skin, skins);
    this.hair = pick(Channel.hair, hairs);
    this.iris = pick(Channel.iris, irises);
    this.shirt = pick(Channel.shirt, shirts);
    this.trousers = pick(Channel.trousers, slacks);
    this.shoes = pick(Channel.shoes, leathers);
    this.striped = pick(Channel.weave, [true, false, false]);
  }

  /**
   * Returns the colour of a sample: its material, the light on it at rest, and noise as in cameras.
   */
  paint(s: Sample, index: number): [number, number, number] {
    // Light is from above and in front, slightly from the person's right; sky and room light the
    // rest.
    const lit = Math.max(0, dot(s.normal, [-0.3, 0.68, 0.67]));
    const bright = (0.62 + 0.42 * lit + 0.06 * s.normal[1]) * (0.55 + 0.45 * s.openness);
    const base = this.base(s);
    return [0, 1, 2].map((channel) => {
      const grain = 0.012 * (2 * hash(this.seed, Channel.grain, 3 * index + channel) - 1);
      return Math.round(255 * Math.min(Math.max(base[channel]! * bright + grain, 0), 1));
    }) as [number, number, number];
  }

  private base(s: Sample): Shade {
    const p = s.position;
    switch (s.material) {
      case "skin":
        return this.paintSkin(s);
      case "eye":
        return this.paintEye(p);
      case "hair":
        return times(this.hair, 1 + 0.25 * texture(this.seed, Channel.hairTexture, [p[0] * 6, p[1], p[2] * 2], 0.02));
      case "cloth":
        return this.paintShirt(s);
      case "trousers":
        return this.paintTrousers(p);
      case "shoe":
        return p[1] < 0.02 ? times(this.shoes, 0.45) : this.shoes;
    }
  }

  private paintSkin({ position: p, bone }: Sample): Shade {
    let base = times(this.skin, 1 + 0.03 * texture(this.seed, Channel.skinTexture, p, 0.012));
    if ((bone !== Bone.head && bone !== Bone.jaw) || p[2] < 0.04) {
      return base;
    }
    const x = Math.abs(p[0]);
    const cheek = Math.hypot((x - 0.042) / 0.022, (p[1] - 1.6) / 0.016);
    base = blend(base, [0.8, 0.36, 0.32], 0.16 * (1 - smoothStep(cheek / 1.4)));
    base = blend(base, [0.78, 0.38, 0.33], 0.14 * (1 - smoothStep(length([p[0], p[1] - 1.604, p[2] - 0.112]) / 0.02)));
    const lips = this.paintMouth(x, p[1] - mouth[1]);
    if (lips) {
      return lips;
    }
    // The brow is an arch that is thinner at the outer end.
    const arch = 1.6515 + 0.006 * (1 - ((x - 0.03) / 0.02) ** 2);
    if (x > 0.012 && x < 0.051 && Math.abs(p[1] - arch) < mix(0.0048, 0.0022, ramp(0.03, 0.051, x))) {
      return blend(this.hair, this.skin, 0.12);
    }
    // Lashes and the shade of the lid surround the opening of the eye.
    const opening = Math.hypot((x - eye[0]) / 0.0165, (p[1] - eye[1]) / 0.0085);
    return opening < 1.35 && p[2] > 0.055 ? times(base, mix(0.45, 0.85, ramp(0.9, 1.35, opening))) : base;
  }

  /** Lips and the dark line between them, by the distances from the middle of the mouth. */
  private paintMouth(x: number, above: number): Shade | undefined {
    const half = 0.0235;
    if (x > half) {
      return undefined;
    }
    const lip = blend(this.skin, [0.66, 0.24, 0.24], 0.42);
    const narrowing = 1 - (x * x) / (half * half);
    const height = above + 0.003 * (1 - narrowing);
    if (Math.abs(height) < 0.0018) {
      return times(lip, 0.55);
    }
    const upper = 0.0066 * narrowing - 0.0012 * Math.max(0, 1 - x / 0.005);
    return height > 0 && height < upper ? times(lip, 0.92) : height < 0 && height > -0.0085 * narrowing ? lip : undefined;
  }

  private paintEye(p: Vector): Shade {
    const away = Math.hypot(Math.abs(p[0]) - eye[0], p[1] - eye[1]);
    if (away < 0.0026) {
      return [0.05, 0.05, 0.06];
    }
    return away < 0.0062 ? times(this.iris, mix(1.1, 0.6, ramp(0.0035, 0.0062, away))) : [0.93, 0.92, 0.91];
  }

  private paintShirt({ position: p, bone }: Sample): Shade {
    let base = this.shirt;
    const arm = bone >= Bone.leftUpperArm;
    const onArm = sub([Math.abs(p[0]), p[1], p[2]], leftShoulder);
    const around = arm ? dot(onArm, armAxis) + p[2] : p[0];
    if (this.striped && (around + 1) % 0.036 < 0.008) {
      base = blend(base, [0.95, 0.95, 0.96], 0.55);
    }
    if (p[1] > 1.455 && !arm) {
      base = blend(base, [1, 1, 1], 0.1);
    }
    base = times(base, 1 + 0.03 * texture(this.seed, Channel.clothTexture, p, 0.004));
    if (!arm && p[2] > 0 && Math.abs(p[0]) < 0.0165) {
      // The button band has an edge, and a button every 9 cm.
      const button = ((p[1] + 1) % 0.09) - 0.045;
      return Math.hypot(p[0], button) < 0.0062 ? [0.93, 0.92, 0.88] : Math.abs(p[0]) > 0.0135 ? times(base, 0.78) : base;
    }
    return arm && dot(onArm, armDirection) > 0.498 ? times(base, 0.92) : base;
  }

  private paintTrousers(p: Vector): Shade {
    if (p[1] > belt - 0.035) {
      const x = Math.abs(p[0]);
      const buckle = p[2] > 0 && x < 0.022 && (x > 0.016 || Math.abs(p[1] - belt + 0.0175) > 0.01);
      return buckle ? [0.72, 0.7, 0.64] : [0.17, 0.12, 0.09];
    }
    const crease = p[1] < 0.85 && p[2] > 0 && Math.abs(Math.abs(p[0]) - 0.1) < 0.004;
    return times(this.trousers, (crease ? 1.12 : 1) + 0.05 * texture(this.seed, Channel.clothTexture, p, 0.004));
  }

  /**
   * Returns the displacement of a sample from the ideal surface, in metres: folds of cloth, locks
   * of hair.
   */
  relief({ position: p, material }: Sample): number {
    switch (material) {
      case "cloth":
        // Folds are horizontal, and deeper at the waist.
        return (0.0022 + 0.0035 * (1 - ramp(0, 0.12, Math.abs(p[1] - 1)))) * texture(this.seed, Channel.fold, [p[0] * 0.45, p[1], p[2] * 0.45], 0.03);
      case "trousers":
        return (0.0022 + 0.003 * (1 - ramp(0, 0.1, Math.abs(p[1] - 0.52)))) * texture(this.seed, Channel.fold, [p[0] * 0.5, p[1], p[2] * 0.5], 0.035);
      case "hair":
        return 0.004 * texture(this.seed, Channel.hairTexture, [p[0] * 2.5, p[1], p[2]], 0.018);
      default:
        return 0;
    }
  }

  /** The colour of closed lids. */
  get lid(): [number, number, number] {
    return this.skin.map((v) => Math.round(255 * 0.82 * v)) as [number, number, number];
  }
}

function times(s: Shade, f: number): Shade {
  return [s[0] * f, s[1] * f, s[2] * f];
}

function blend(a: Shade, b: Shade, share: number): Shade {
  return [mix(a[0], b[0], share), mix(a[1], b[1], share), mix(a[2], b[2], share)];
}
