// Voices from the positions of their speakers. Browsers play nothing before the first click or key.

import type { World } from "../scene/world";

interface Voice {
  track: MediaStreamTrack;
  element: HTMLAudioElement;
  source: MediaStreamAudioSourceNode;
  panner: PannerNode;
  analyser: AnalyserNode;
}

/** The loudness of speech close to the microphone, as the root mean square of samples. */
const loud = 0.12;

export class Sound {
  private context: AudioContext | undefined;
  private readonly samples = new Float32Array(1024);
  private readonly tracks = new Map<string, MediaStreamTrack>();
  private readonly voices = new Map<string, Voice>();

  /**
   * @param changed is called when sound begins or ends, also if the system has interrupted it, as for a
   * call; the next toggle then continues it
   */
  constructor(private readonly changed: (on: boolean) => void = () => {}) {}

  get on(): boolean {
    return this.context?.state === "running";
  }

  /** Adds the sound of a line. A new connection has new tracks on lines of the same names. */
  add(mid: string, track: MediaStreamTrack): void {
    this.tracks.set(mid, track);
    if (this.context) {
      this.connect(mid, track);
    }
  }

  /** Removes the sound of a line that has ended. */
  remove(mid: string): void {
    this.tracks.delete(mid);
    const voice = this.voices.get(mid);
    if (voice) {
      this.voices.delete(mid);
      silence(voice);
    }
  }

  /** Switches sound on or off. It must be called from a click or a key. */
  async toggle(): Promise<boolean> {
    if (this.on) {
      await this.context!.suspend();
      return false;
    }
    this.context ??= this.open();
    await this.context.resume();
    for (const [mid, track] of this.tracks) {
      this.connect(mid, track);
    }
    return true;
  }

  private open(): AudioContext {
    const context = new AudioContext();
    context.onstatechange = () => this.changed(this.on);
    return context;
  }

  private connect(mid: string, track: MediaStreamTrack): void {
    const before = this.voices.get(mid);
    if (before?.track === track || !this.context) {
      return;
    }
    if (before) {
      this.voices.delete(mid);
      silence(before);
    }
    const stream = new MediaStream([track]);
    // Chromium decodes a remote track only while an element plays it, muted or not.
    const element = new Audio();
    element.srcObject = stream;
    element.muted = true;
    // The promise rejects if the line ends immediately.
    element.play().catch(() => {});
    const source = this.context.createMediaStreamSource(stream);
    const panner = new PannerNode(this.context, { panningModel: "HRTF", distanceModel: "inverse", refDistance: 1, rolloffFactor: 0.7 });
    source.connect(panner).connect(this.context.destination);
    const analyser = new AnalyserNode(this.context, { fftSize: 1024 });
    source.connect(analyser);
    this.voices.set(mid, { track, element, source, panner, analyser });
  }

  /** Returns how loud a voice is at present, from 0 to 1; 0 while sound is off. */
  level(mid: string): number {
    const analyser = this.on ? this.voices.get(mid)?.analyser : undefined;
    if (!analyser) {
      return 0;
    }
    analyser.getFloatTimeDomainData(this.samples);
    return Math.min(1, Math.sqrt(this.samples.reduce((sum, v) => sum + v * v, 0) / this.samples.length) / loud);
  }

  /** Moves the listener to the eye, and voices to their speakers. */
  follow(world: World, speakers: Iterable<{ mid: string; participant: string }>): void {
    if (!this.context || !this.on) {
      return;
    }
    // In a headset, the camera is a child of the floor below the wearer.
    const position = world.camera.getWorldPosition(world.camera.position.clone());
    const quaternion = world.camera.getWorldQuaternion(world.camera.quaternion.clone());
    const ahead = position.clone().set(0, 0, -1).applyQuaternion(quaternion);
    const up = position.clone().set(0, 1, 0).applyQuaternion(quaternion);
    const { listener, currentTime } = this.context;
    if (listener.positionX) {
      for (const [parameter, value] of [
        [listener.positionX, position.x], [listener.positionY, position.y], [listener.positionZ, position.z],
        [listener.forwardX, ahead.x], [listener.forwardY, ahead.y], [listener.forwardZ, ahead.z],
        [listener.upX, up.x], [listener.upY, up.y], [listener.upZ, up.z],
      ] as const) {
        parameter.setTargetAtTime(value, currentTime, 0.02);
      }
    }
    for (const { mid, participant } of speakers) {
      const at = world.objects.focus(participant);
      const panner = this.voices.get(mid)?.panner;
      if (at && panner) {
        panner.positionX.setTargetAtTime(at.x, currentTime, 0.02);
        panner.positionY.setTargetAtTime(at.y, currentTime, 0.02);
        panner.positionZ.setTargetAtTime(at.z, currentTime, 0.02);
      }
    }
  }

  close(): void {
    for (const voice of this.voices.values()) {
      silence(voice);
    }
    this.voices.clear();
    this.tracks.clear();
    const { context } = this;
    this.context = undefined;
    if (context) {
      context.onstatechange = null;
      void context.close();
    }
  }
}

function silence({ element, source, panner }: Voice): void {
  element.pause();
  element.srcObject = null;
  source.disconnect();
  panner.disconnect();
}
