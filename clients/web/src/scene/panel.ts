// A panel that shows the picture of a webcam or a screen in space: a rounded plane in a dark frame,
// with a name at the lower edge. Without a picture the panel says so.

import { DoubleSide, Group, LinearFilter, LinearMipmapLinearFilter, Mesh, MeshBasicMaterial, PlaneGeometry, Shape, ShapeGeometry, SRGBColorSpace, VideoTexture } from "three";
import { textTexture } from "./label";
import { tintOf } from "./tints";

/** The radius of the corners and the width of the frame, in metres. */
const corner = 0.03;
const border = 0.012;
/** The distance between the frame, the picture and the text, so that none hides another, in metres. */
const layer = 0.004;
/** The height of text: a share of the panel's height, in metres at least. */
const textShare = 0.06;
const leastText = 0.06;
/** The distance of the name from the corner of the picture, in metres. */
const inset = 0.016;
const frameColor = 0x0b0e14;
const emptyColor = 0x222a38;

type Plane = Mesh<PlaneGeometry, MeshBasicMaterial>;

/** Returns a rectangle with round corners around the origin. Its texture fills the rectangle. */
function rounded(width: number, height: number, radius: number): ShapeGeometry {
  const [x, y, r] = [width / 2, height / 2, radius];
  const shape = new Shape();
  shape.absarc(x - r, -y + r, r, -Math.PI / 2, 0, false);
  shape.absarc(x - r, y - r, r, 0, Math.PI / 2, false);
  shape.absarc(-x + r, y - r, r, Math.PI / 2, Math.PI, false);
  shape.absarc(-x + r, -y + r, r, Math.PI, 1.5 * Math.PI, false);
  const geometry = new ShapeGeometry(shape, 6);
  const { position, uv } = geometry.attributes;
  for (let i = 0; i < position!.count; i++) {
    uv!.setXY(i, position!.getX(i) / width + 0.5, position!.getY(i) / height + 0.5);
  }
  return geometry;
}

/** Returns the largest size of a ratio, width over height, within a size. */
export function fit(ratio: number, { width, height }: { width: number; height: number }): { width: number; height: number } {
  return ratio > width / height ? { width, height: width / ratio } : { width: height * ratio, height };
}

export class Panel {
  /** The middle of the panel is the origin, and its front faces +z. */
  readonly object = new Group();
  private readonly frame = new Mesh(new ShapeGeometry(), new MeshBasicMaterial({ color: frameColor, side: DoubleSide, toneMapped: false }));
  private readonly surface = new Mesh(new ShapeGeometry(), new MeshBasicMaterial({ color: emptyColor, toneMapped: false }));
  private readonly name: Plane;
  private readonly notice: Plane;
  private video: HTMLVideoElement | undefined;
  private texture: VideoTexture | undefined;
  /** Width over height of the last picture, 0 before the first. */
  private ratio = 0;

  /** @param mipmaps makes distant pictures smoother, and takes time of the graphics card */
  constructor(name: string, readonly width: number, readonly height: number, private readonly mipmaps: boolean) {
    const text = Math.max(leastText, textShare * height);
    this.name = plane(name, text, 0.72 * width, true);
    this.notice = plane("No picture", text, 0.8 * width, false);
    this.surface.position.z = layer;
    this.notice.position.z = 2 * layer;
    this.object.add(this.frame, this.surface, this.name, this.notice);
    this.lay();
  }

  /** Shows the pictures of a track; undefined when none is received. */
  show(track: MediaStreamTrack | undefined): void {
    this.end();
    if (!track) {
      return;
    }
    const video = document.createElement("video");
    video.muted = true;
    video.playsInline = true;
    video.srcObject = new MediaStream([track]);
    // The promise rejects if the line ends immediately.
    video.play().catch(() => {});
    const texture = new VideoTexture(video);
    texture.colorSpace = SRGBColorSpace;
    texture.generateMipmaps = this.mipmaps;
    texture.minFilter = this.mipmaps ? LinearMipmapLinearFilter : LinearFilter;
    this.video = video;
    this.texture = texture;
    const arrived = (_: number, { width, height }: { width: number; height: number }): void => {
      if (this.video === video) {
        this.arrived(width, height);
        video.requestVideoFrameCallback(arrived);
      }
    };
    video.requestVideoFrameCallback(arrived);
  }

  /** A picture has arrived: its size may be another one. */
  private arrived(width: number, height: number): void {
    const { material } = this.surface;
    if (material.map !== this.texture) {
      material.map = this.texture!;
      material.color.set(0xffffff);
      material.needsUpdate = true;
      this.notice.visible = false;
    }
    if (width > 0 && height > 0 && width / height !== this.ratio) {
      this.ratio = width / height;
      this.lay();
    }
  }

  /** Removes the picture until the next one arrives. */
  clear(): void {
    const { material } = this.surface;
    material.map = null;
    material.color.set(emptyColor);
    material.needsUpdate = true;
    this.notice.visible = true;
  }

  /** Colours the frame by the quality of the picture; undefined for the usual colour. */
  tint(quality: number | undefined, qualities: number): void {
    if (quality === undefined || quality < 0) {
      this.frame.material.color.set(frameColor);
    } else {
      this.frame.material.color.copy(tintOf(quality, qualities));
    }
  }

  /** The size of the present picture in pixels; undefined if the panel shows none. */
  get picture(): { width: number; height: number } | undefined {
    return this.video && this.surface.material.map ? { width: this.video.videoWidth, height: this.video.videoHeight } : undefined;
  }

  /** Sizes the parts for the ratio of the picture. */
  private lay(): void {
    const { width, height } = this.ratio > 0 ? fit(this.ratio, this) : this;
    this.frame.geometry.dispose();
    this.surface.geometry.dispose();
    this.frame.geometry = rounded(width, height, corner);
    this.surface.geometry = rounded(width - 2 * border, height - 2 * border, corner - border);
    const { width: nameWidth, height: nameHeight } = this.name.geometry.parameters;
    this.name.position.set(-width / 2 + border + inset + nameWidth / 2, -height / 2 + border + inset + nameHeight / 2, 2 * layer);
  }

  private end(): void {
    this.clear();
    this.video?.pause();
    if (this.video) {
      this.video.srcObject = null;
    }
    this.video = undefined;
    this.texture?.dispose();
    this.texture = undefined;
  }

  dispose(): void {
    this.end();
    for (const { geometry, material } of [this.frame, this.surface, this.name, this.notice]) {
      geometry.dispose();
      material.map?.dispose();
      material.dispose();
    }
  }
}

/** Makes a plane with text of a height, narrower if the text would be too wide. */
function plane(text: string, height: number, mostWidth: number, grounded: boolean): Plane {
  const { map, ratio } = textTexture(text, grounded);
  const shrink = Math.min(1, mostWidth / (height * ratio));
  const material = new MeshBasicMaterial({ map, transparent: true, depthWrite: false, toneMapped: false });
  return new Mesh(new PlaneGeometry(shrink * height * ratio, shrink * height), material);
}
