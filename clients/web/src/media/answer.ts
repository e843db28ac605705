// Changes to the browser's answer.

/**
 * Adds reference times (RFC 3611 section 4.4) to the payload types of an answer for which the
 * offer permits them. Chromium has them, but does not accept them by itself. A browser that sends
 * no media learns the round trip from the server's replies alone. Without the round trip, Chromium
 * assumes 100 ms, and requests a lost packet only twice while the server retransmits.
 */
export function withReferenceTimes(answer: string, offer: string): string {
  return answer.replace(/a=rtcp-fb:(\d+) nack\r\n/g, (line, type: string) => {
    const reference = `a=rtcp-fb:${type} rrtr\r\n`;
    return offer.includes(reference) && !answer.includes(reference) ? line + reference : line;
  });
}
