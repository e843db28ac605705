// The list of rooms, which the server gives over HTTP. The request also reports whether a token is
// accepted, which browsers do not report of a websocket.

export interface RoomSummary {
  name: string;
  participants: number;
  publications: number;
}

/** The server requires a token, or another one. */
export class Refused extends Error {}

/**
 * Requests the rooms that are visible with a token, or without one. Throws Refused if the server
 * requires a token, or another one.
 * @param server is the address of the server's pages, with a slash at the end; empty for a page of
 * the server
 */
export async function listRooms(server: string, token: string): Promise<RoomSummary[]> {
  const response = await fetch(`${server}v1/rooms`, token ? { headers: { Authorization: `Bearer ${token}` } } : {});
  if (response.status === 401) {
    throw new Refused((await response.text()).trim());
  }
  if (!response.ok) {
    throw new Error(`the server answers ${response.status}`);
  }
  return ((await response.json()) as { rooms: RoomSummary[] }).rooms;
}

/**
 * Returns the reason why the server rejects a token, with advice; undefined if it accepts it, or
 * cannot be reached.
 */
export async function refusalOf(server: string, token: string): Promise<string | undefined> {
  try {
    await listRooms(server, token);
  } catch (error) {
    return error instanceof Refused ? explain(token, error) : undefined;
  }
  return undefined;
}

/** Explains to the user why there is no list of rooms. */
export function explain(token: string, error: unknown): string {
  if (error instanceof Refused) {
    return token ? `The token is not accepted: ${error.message}` : "This server requires a token. Its operator can create one with: volsfu token";
  }
  return `The server cannot be reached: ${error instanceof Error ? error.message : String(error)}`;
}
