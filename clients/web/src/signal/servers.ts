// The servers on which a session may continue.

import type { NodeAddress } from "./messages";

const maxServers = 64;
/** The maximum number of servers to which a page is sent in succession. */
export const maxMoves = 8;

export class Servers {
  /** The websocket's address of the next attempt, that of the session, and those of the other servers. */
  private attempted: string;
  private present: string;
  private others: string[] = [];
  /** The servers that the present round of attempts has still to try. */
  private round: string[] = [];

  constructor(private readonly url: string) {
    this.attempted = this.present = url;
  }

  get target(): string {
    return this.attempted;
  }

  /** Reports whether the next attempt goes to the server of the session. */
  get atPresent(): boolean {
    return this.attempted === this.present;
  }

  /** Reports whether there is a server besides that of the session. */
  get several(): boolean {
    return this.others.some((address) => address !== this.present);
  }

  /** Reports whether the present round has no further server. */
  get last(): boolean {
    return this.round.length === 0;
  }

  /** The session is on the server of the last attempt. */
  joined(nodes: readonly NodeAddress[]): void {
    this.present = this.attempted;
    this.round = [];
    this.set(nodes);
  }

  /** The session is on a server that was joined beside the present one. */
  moved(address: string, nodes: readonly NodeAddress[]): void {
    this.attempted = address;
    this.joined(nodes);
  }

  /** Replaces the other servers. */
  set(nodes: readonly NodeAddress[]): void {
    const addresses = nodes.slice(0, maxServers).map((node) => this.address(node.url));
    this.others = [...new Set(addresses.filter((address) => address !== undefined))];
  }

  /** Makes the next attempt on a server. Returns false if the page must not connect to the address. */
  visit(url: string): boolean {
    const address = this.address(url);
    this.attempted = address ?? this.attempted;
    return address !== undefined;
  }

  /**
   * Chooses the server of the next attempt. Returns false if the attempt begins a new round and needs
   * a delay. The first round after a loss needs none if there are several servers. A silent server is
   * the last of its round.
   */
  next(lost: boolean, silent: boolean): boolean {
    const goesOn = this.round.length > 0 || (lost && this.several);
    if (this.round.length === 0) {
      this.begin(lost && silent);
    }
    this.attempted = this.round.shift() ?? this.present;
    return goesOn;
  }

  /** Begins a round of attempts. A silent server is the last of the round. */
  begin(silent: boolean): void {
    const others = this.others.filter((address) => address !== this.present);
    this.round = silent ? [...others, this.present] : [this.present, ...others];
  }

  /**
   * Returns the address of the websocket of a server; undefined if the page must not connect to it. The
   * token is not sent without TLS if it was sent with TLS before.
   */
  address(url: string): string | undefined {
    const own = new URL(this.url);
    let other: URL;
    try {
      other = new URL(url);
    } catch {
      return undefined;
    }
    if (other.protocol !== "wss:" && (other.protocol !== "ws:" || own.protocol === "wss:")) {
      return undefined;
    }
    other.pathname = own.pathname;
    other.search = "";
    other.hash = "";
    return other.href;
  }
}
