// The media of this page that the browser encodes: sound, webcams and screens.

/** The media of a publication, with one line of the connection for each quality. */
export interface Source {
  /** Returns the track to send at a quality. */
  track(quality: number): MediaStreamTrack;
  /** Prepares a line before the connection answers the server's offer. */
  prepare?(transceiver: RTCRtpTransceiver): void;
  /** The line of a quality has been answered: the parameters of the sender may be set. */
  answered?(quality: number, sender: RTCRtpSender, mid: string): void;
}
