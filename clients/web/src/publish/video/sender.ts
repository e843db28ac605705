// The parameters of a sender. Browsers accept one change at a time.

import type { VideoCodec, VideoKind } from "./plan";

/** An encoding with the member that TypeScript's declarations lack. */
interface Encoding extends RTCRtpEncodingParameters {
  codec?: RTCRtpCodec;
}

export class EncodingSender {
  private next: RTCRtpEncodingParameters | undefined;
  private setting = false;

  /** @param trouble is called if the browser refuses parameters */
  constructor(
    private readonly sender: RTCRtpSender,
    readonly mid: string,
    private readonly kind: VideoKind,
    private readonly codec: VideoCodec,
    private readonly trouble: (message: string) => void,
  ) {}

  /** Sets the parameters after the change that is under way; of several that wait, the last applies. */
  set(encoding: RTCRtpEncodingParameters): void {
    this.next = encoding;
    if (!this.setting) {
      void this.apply();
    }
  }

  private async apply(): Promise<void> {
    this.setting = true;
    try {
      while (this.next) {
        const { next } = this;
        this.next = undefined;
        await this.change(next);
      }
    } catch (error) {
      this.trouble(`The browser cannot set the quality of the ${this.kind}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.setting = false;
    }
  }

  private async change(next: RTCRtpEncodingParameters): Promise<void> {
    const parameters = this.sender.getParameters();
    const encoding: Encoding | undefined = parameters.encodings[0];
    if (!encoding) {
      return;
    }
    Object.assign(encoding, next);
    // An answer keeps the order of codecs in the offer, and without this member the sender takes the first one.
    const wanted = `video/${this.codec}`.toLowerCase();
    const codec = parameters.codecs.find((c) => c.mimeType.toLowerCase() === wanted);
    if (codec) {
      encoding.codec = codec;
    }
    // The server chooses qualities by the sizes in the description, so a slow browser lowers the frame rate, not the size.
    parameters.degradationPreference = "maintain-resolution";
    await this.sender.setParameters(parameters);
  }
}
