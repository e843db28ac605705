using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>
    /// The latest state of the room from the server: participants and publications. It belongs to SignallingSession and
    /// changes under its lock; SignallingClient returns copies.
    /// </summary>
    sealed class Room
    {
        internal readonly Dictionary<string, Participant> Participants = new Dictionary<string, Participant>();

        /// <summary>Sets the room from the reply to a join.</summary>
        internal void Enter(IEnumerable<Participant> participants)
        {
            Participants.Clear();
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
