using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>
    /// The room as the server last told it: who is there, what they publish and where it stands, and what slots carry. It belongs to SignallingSession, under
    /// whose lock it changes; SignallingClient hands out copies.
    /// </summary>
    sealed class Room
    {
        internal readonly Dictionary<string, Participant> Participants = new Dictionary<string, Participant>();
        internal readonly Dictionary<string, Assignment> Slots = new Dictionary<string, Assignment>();

        /// <summary>Takes the room from the reply to a join. Assignments are told anew.</summary>
        internal void Enter(IEnumerable<Participant> participants)
        {
            Participants.Clear();
            Slots.Clear();
            foreach (Participant participant in participants)
            {
                Participants[participant.Identity] = participant;
            }
        }

        internal void Come(Participant participant)
        {
            if (Participants.Count < Limits.Participants || Participants.ContainsKey(participant.Identity))
            {
                Participants[participant.Identity] = participant;
            }
        }

        internal void Go(string identity)
        {
            Participants.Remove(identity);
        }

        internal void Begin(string identity, Publication publication)
        {
            Participant participant;
            if (Participants.TryGetValue(identity, out participant) &&
                (participant.Publications.Count < Limits.Publications || participant.Publications.ContainsKey(publication.Name)))
            {
                participant.Publications[publication.Name] = publication;
            }
        }

        internal void End(string identity, string publication)
        {
            Participant participant;
            if (Participants.TryGetValue(identity, out participant))
            {
                participant.Publications.Remove(publication);
            }
        }

        /// <summary>Keeps what slots carry; assignments that are older than what is known are left out of the result.</summary>
        internal List<Assignment> Assign(IEnumerable<Assignment> assignments)
        {
            var taken = new List<Assignment>();
            foreach (Assignment assignment in assignments)
            {
                Assignment known;
                bool there = Slots.TryGetValue(assignment.Mid, out known);
                if (there ? assignment.Generation >= known.Generation : Slots.Count < Limits.Slots)
                {
                    Slots[assignment.Mid] = assignment;
                    taken.Add(assignment);
                }
            }
            return taken;
        }

        /// <summary>What a slot carries in that generation; null where it is idle or carries something else by now.</summary>
        internal Assignment Carried(string mid, long generation)
        {
            Assignment known;
            return Slots.TryGetValue(mid, out known) && known.Generation == generation && known.Participant != "" ? known : null;
        }

        internal List<Participant> Copy()
        {
            var copies = new List<Participant>();
            foreach (Participant participant in Participants.Values)
            {
                copies.Add(new Participant
                {
                    Identity = participant.Identity,
                    Publications = new Dictionary<string, Publication>(participant.Publications)
                });
            }
            return copies;
        }
    }
}
