// What a token says of its bearer. Only the server can tell whether that is true; a page needs to know which names it must not contradict.

export interface Claims {
  identity: string;
  room: string;
}

/** Reads the names that a JSON Web Token is bound to, empty where it leaves the choice, or is none. */
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
