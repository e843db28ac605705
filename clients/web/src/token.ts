// The claims of a token about its bearer. Only the server can verify them; a page reads the names
// that it must not contradict.

export interface Claims {
  identity: string;
  room: string;
}

/** Returns the names bound by a JSON Web Token, empty if it leaves the choice or is not a token. */
export function claimsOf(token: string): Claims {
  try {
    const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(payload), (c) => c.charCodeAt(0));
    const { sub, room } = JSON.parse(new TextDecoder().decode(bytes)) as { sub?: unknown; room?: unknown };
    return { identity: typeof sub === "string" ? sub : "", room: typeof room === "string" ? room : "" };
  } catch {
    return { identity: "", room: "" };
  }
}

/** Returns the name of a participant: the chosen one, that of the token, or one of a guest. */
export function identityOf(chosen: string | undefined, token: string): string {
  return chosen || claimsOf(token).identity || `guest-${Math.floor(Math.random() * 1e4)}`;
}
