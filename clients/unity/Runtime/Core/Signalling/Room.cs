using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>
    /// The latest state of the room from the server: participants, publications with their poses, and the content of
    /// slots. It belongs to SignallingSession and changes under its lock; SignallingClient returns copies.
    /// </summary>
    sealed class Room
    {
        internal readonly Dictionary<string, Participant> Participants = new Dictionary<string, Participant>();
        internal readonly Dictionary<string, Assignment> Slots = new Dictionary<string, Assignment>();

        /// <summary>Sets the room from the reply to a join. The server sends assignments again.</summary>
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

        /// <summary>Stores the content of slots; outdated assignments are omitted from the result.</summary>
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

        /// <summary>Returns the content of a slot in that generation; null if it is idle or has other content by now.</summary>
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
