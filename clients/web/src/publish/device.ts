// The availability of cameras and microphones, with sentences for the user.

/** An error with a message for the user and advice. */
export class Lacking extends Error {}

/** Returns the reason why this page cannot use cameras and microphones, or undefined. */
export function lacksDevices(): string | undefined {
  if (!isSecureContext) {
    return "This page was loaded over http, but browsers permit cameras and microphones only on https pages and on localhost. Open it over https.";
  }
  return navigator.mediaDevices ? undefined : "This browser does not support cameras and microphones on web pages.";
}

/** Explains why a camera or a microphone is unavailable. */
export function explain(error: unknown, what: "camera" | "microphone"): Lacking {
  const name = error instanceof DOMException ? error.name : "";
  switch (name) {
    case "NotAllowedError":
      return new Lacking(`The ${what} was not allowed. Allow it with the icon beside the page's address, then try again.`);
    case "NotFoundError":
    case "OverconstrainedError":
      return new Lacking(`There is no ${what}. Connect one, then try again.`);
    case "NotReadableError":
      return new Lacking(`The ${what} does not work. If another program is using it, close that program, then try again.`);
    default:
      return new Lacking(`The ${what} cannot be used: ${error instanceof Error ? error.message : String(error)}`);
  }
}
