// The participants of the conference and their publications.

import type { MuteState, Participant, Publication } from "../signal/messages";

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
    this.participants.set(participant.identity, { ...participant, publications: [] });
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
      if (participant.muted) {
        participant.muted = participant.muted.filter((m) => m.publication !== name);
      }
    }
    this.events.unpublished(identity, name);
  }

  /** Sets the attributes of a participant. */
  describes(identity: string, attributes: Record<string, string>): void {
    const participant = this.participants.get(identity);
    if (participant) {
      participant.attributes = attributes;
      this.events.people();
    }
  }

  /** Sets the muting of a publication. */
  mutes(identity: string, state: MuteState): void {
    const participant = this.participants.get(identity);
    if (participant) {
      const others = (participant.muted ?? []).filter((m) => m.publication !== state.publication);
      participant.muted = state.own || state.operator ? [...others, state] : others;
      this.events.people();
    }
  }

  /** Returns the name to show for a participant: the attribute "name", or the identity. */
  name(identity: string): string {
    return this.participants.get(identity)?.attributes?.["name"] || identity;
  }

  /** Reports whether sound of a participant is muted. */
  silent(identity: string): boolean {
    const participant = this.participants.get(identity);
    return participant?.publications.some((p) => p.kind === "audio" && participant.muted?.some((m) => m.publication === p.name)) ?? false;
  }

  publication(ref: { participant: string; publication: string }): Publication | undefined {
    return this.participants.get(ref.participant)?.publications.find((p) => p.name === ref.publication);
  }
}
