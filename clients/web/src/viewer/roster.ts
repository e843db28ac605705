// The participants of the conference and their publications.

import type { Participant, Publication } from "../signal/messages";

export interface RosterEvents {
  published(participant: string, publication: Publication): void;
  unpublished(participant: string, publication: string): void;
  /** A participant has joined or left. */
  people(): void;
}

export class Roster {
  readonly participants = new Map<string, Participant>();

  constructor(private readonly events: RosterEvents) {}

  /** Sets the present participants: all others have left. */
  present(participants: readonly Participant[]): void {
    const present = new Set(participants.map((p) => p.identity));
    for (const identity of [...this.participants.keys()]) {
      if (!present.has(identity)) {
        this.left(identity);
      }
    }
    for (const participant of participants) {
      this.arrived(participant);
    }
  }

  arrived(participant: Participant): void {
    const before = this.participants.get(participant.identity);
    this.participants.set(participant.identity, { identity: participant.identity, publications: [] });
    for (const gone of before?.publications ?? []) {
      if (!participant.publications.some((p) => p.name === gone.name)) {
        this.events.unpublished(participant.identity, gone.name);
      }
    }
    for (const publication of participant.publications) {
      this.publishes(participant.identity, publication);
    }
    this.events.people();
  }

  left(identity: string): void {
    for (const publication of this.participants.get(identity)?.publications ?? []) {
      this.events.unpublished(identity, publication.name);
    }
    this.participants.delete(identity);
    this.events.people();
  }

  publishes(identity: string, publication: Publication): void {
    const participant = this.participants.get(identity);
    if (!participant) {
      return;
    }
    participant.publications = [...participant.publications.filter((p) => p.name !== publication.name), publication];
    this.events.published(identity, publication);
  }

  unpublishes(identity: string, name: string): void {
    const participant = this.participants.get(identity);
    if (participant) {
      participant.publications = participant.publications.filter((p) => p.name !== name);
    }
    this.events.unpublished(identity, name);
  }

  publication(ref: { participant: string; publication: string }): Publication | undefined {
    return this.participants.get(ref.participant)?.publications.find((p) => p.name === ref.publication);
  }
}
