// The session as the publisher of points uses it.

import type { Conference } from "../viewer/conference";
import type { Link } from "./publisher";

/** Returns the parts of a conference for a publisher. */
export function linkOf(conference: Conference): Link {
  const { encryption } = conference;
  return {
    send: (message) => conference.session.send(message),
    giveUp: (publication, givenUp) => conference.giveUp(publication, givenUp),
    retract: (publication) => conference.retract(publication),
    channel: (label) => conference.channel(label),
    ahead: () => conference.session.clock.ahead,
    seal: encryption && ((frame) => encryption.seal(frame)),
  };
}
