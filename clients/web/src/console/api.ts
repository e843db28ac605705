// The client of the operators' interface: a stream of snapshots, and actions.

import { type Moved, movedText, type Snapshot } from "./state";

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const base = new URL("../admin/v1/", document.baseURI);

function headers(token: string): HeadersInit {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) {
    return response;
  }
  let message = `the server answers ${response.status}`;
  try {
    message = ((await response.json()) as { error: string }).error;
  } catch {
    // The body is from a proxy; the status is sufficient.
  }
  throw new Refused(response.status, message);
}

/** Reads snapshots until the stream ends or is aborted. */
export async function follow(token: string, signal: AbortSignal, take: (snapshot: Snapshot) => void): Promise<void> {
  const response = await checked(await fetch(new URL("events", base), { headers: headers(token), signal }));
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    const events = (rest + value).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) {
        take(JSON.parse(data.slice("data: ".length)) as Snapshot);
      }
    }
  }
}

async function act(method: string, path: string, token: string, body?: unknown): Promise<Response> {
  return checked(await fetch(new URL(path, base), { method, headers: headers(token), body: body === undefined ? null : JSON.stringify(body) }));
}

export const kick = (token: string, room: string, identity: string): Promise<Response> =>
  act("DELETE", `rooms/${encodeURIComponent(room)}/participants/${encodeURIComponent(identity)}`, token);
export const closeRoom = (token: string, room: string): Promise<Response> => act("DELETE", `rooms/${encodeURIComponent(room)}`, token);
export const drain = (token: string): Promise<Response> => act("POST", "drain", token);
export const drainNode = (token: string, node: string): Promise<Response> => act("POST", `nodes/${encodeURIComponent(node)}/drain`, token);

/** Sends the participants of a room to a node. Returns the result as a sentence. */
export async function moveRoom(token: string, room: string, node: string): Promise<string> {
  const response = await act("POST", `rooms/${encodeURIComponent(room)}/move`, token, { node });
  return movedText((await response.json()) as Moved, node);
}
