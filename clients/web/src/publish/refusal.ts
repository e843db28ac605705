// Rejected publications.

/** Returns the reason for a rejected publication, with advice. */
export function refusal({ code, message }: { code: string; message: string }): string {
  switch (code) {
    case "forbidden":
      return "Your token does not permit publishing. The operator of the server can create a token that does: volsfu token --publish";
    case "limit":
      return `A limit of the server is reached: ${message}. Choose fewer tiles or qualities.`;
    default:
      return `The server rejected the publication: ${message}`;
  }
}
