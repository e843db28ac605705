// The ground of the space: a floor that fades into the horizon, the sky above it, and the soft
// shadows of people.

import { BackSide, Color, DoubleSide, Group, Mesh, PlaneGeometry, RingGeometry, ShaderMaterial, SphereGeometry } from "three";

/** The distance at which the floor has become the horizon, in metres. */
const horizon = 18;
/** The radius of the floor, in metres. */
const reach = 50;

// Colours are computed at the vertices, which are dense where the colours change: the ground covers
// the whole picture, and processors that draw it have no time for more.

const skyVertexShader = /* glsl */ `
  uniform vec3 near;
  uniform vec3 top;
  varying vec3 color;
  void main() {
    vec4 world = modelMatrix * vec4(position, 1.0);
    color = mix(near, top, smoothstep(0.0, 0.55, normalize(world.xyz - cameraPosition).y));
    gl_Position = projectionMatrix * viewMatrix * world;
  }
`;

const floorVertexShader = /* glsl */ `
  uniform vec3 near;
  uniform vec3 ground;
  uniform vec3 light;
  varying vec3 color;
  void main() {
    vec4 world = modelMatrix * vec4(position, 1.0);
    // A pool of light lies around the middle.
    vec3 lit = mix(light, ground, smoothstep(0.0, 5.0, length(world.xz)));
    color = mix(lit, near, smoothstep(2.0, ${horizon.toFixed(1)}, distance(world.xz, cameraPosition.xz)));
    gl_Position = projectionMatrix * viewMatrix * world;
  }
`;

const fragmentShader = /* glsl */ `
  varying vec3 color;
  void main() {
    gl_FragColor = vec4(color, 1.0);
  }
`;

const shadowVertexShader = /* glsl */ `
  varying vec2 off;
  void main() {
    off = position.xy;
    gl_Position = projectionMatrix * modelViewMatrix * vec4(position.x, 0.0, position.y, 1.0);
  }
`;

const shadowFragmentShader = /* glsl */ `
  uniform float strength;
  varying vec2 off;
  void main() {
    float shade = 1.0 - smoothstep(0.0, 1.0, length(off));
    gl_FragColor = vec4(0.02, 0.03, 0.06, strength * shade * shade);
  }
`;

/** The colours of a theme; horizon is that of floor and sky where they meet. */
interface Theme {
  horizon: number;
  top: number;
  ground: number;
  light: number;
}

const themes: Record<"light" | "dark", Theme> = {
  light: { horizon: 0xdde4ee, top: 0xb9c8dd, ground: 0xcdd5e1, light: 0xeef2f7 },
  dark: { horizon: 0x141a25, top: 0x080b11, ground: 0x151b26, light: 0x2c3648 },
};

export class Ground {
  readonly object = new Group();
  private readonly sky: Mesh<SphereGeometry, ShaderMaterial>;
  private readonly floor: Mesh<RingGeometry, ShaderMaterial>;

  constructor() {
    const colors = { near: { value: new Color() }, top: { value: new Color() }, ground: { value: new Color() }, light: { value: new Color() } };
    this.floor = new Mesh(rings(), new ShaderMaterial({ vertexShader: floorVertexShader, fragmentShader, uniforms: colors }));
    this.floor.renderOrder = -2;
    // The sky is drawn where the floor is not.
    this.sky = new Mesh(new SphereGeometry(60, 24, 48), new ShaderMaterial({
      vertexShader: skyVertexShader, fragmentShader, uniforms: colors, side: BackSide, depthWrite: false,
    }));
    this.sky.renderOrder = -1;
    this.object.add(this.sky, this.floor);
  }

  /** Sets the colours, which are screen colours. */
  theme(dark: boolean): void {
    const { horizon: near, top, ground, light } = themes[dark ? "dark" : "light"];
    const { uniforms } = this.floor.material;
    for (const [name, color] of Object.entries({ near, top, ground, light })) {
      (uniforms[name]!.value as Color).setHex(color, "srgb-linear");
    }
  }
}

/** Returns the floor: rings that widen with the square of their number. */
function rings(): RingGeometry {
  const geometry = new RingGeometry(0, 1, 64, 40).rotateX(-Math.PI / 2);
  const { position } = geometry.attributes;
  for (let i = 0; i < position!.count; i++) {
    const [x, z] = [position!.getX(i), position!.getZ(i)];
    const scale = reach * Math.hypot(x, z);
    position!.setXYZ(i, x * scale, 0, z * scale);
  }
  return geometry;
}

/** The shadow of a person on the floor, an ellipse whose radii are the scale of x and z. */
export function shadow(): Mesh<PlaneGeometry, ShaderMaterial> {
  const mesh = new Mesh(new PlaneGeometry(2, 2), new ShaderMaterial({
    vertexShader: shadowVertexShader, fragmentShader: shadowFragmentShader, uniforms: { strength: { value: 0.5 } },
    transparent: true, depthWrite: false, side: DoubleSide,
  }));
  mesh.renderOrder = -1;
  return mesh;
}
