// The parameters of a sender. Browsers accept one change at a time.

import type { VideoKind } from "./plan";

export class EncodingSender {
  private next: RTCRtpEncodingParameters | undefined;
  private setting = false;

  /** @param trouble is called if the browser refuses parameters */
  constructor(
    private readonly sender: RTCRtpSender,
    readonly mid: string,
    private readonly kind: VideoKind,
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
    const [encoding] = parameters.encodings;
    if (!encoding) {
      return;
    }
    Object.assign(encoding, next);
    // The server chooses qualities by the sizes in the description, so a slow browser lowers the frame rate, not the size.
    parameters.degradationPreference = "maintain-resolution";
    await this.sender.setParameters(parameters);
  }
}
