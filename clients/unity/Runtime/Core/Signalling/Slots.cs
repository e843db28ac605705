using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>The content of a connection's slots, by media line.</summary>
    sealed class Slots
    {
        readonly Dictionary<string, Assignment> contents = new Dictionary<string, Assignment>();

        /// <summary>Stores the content of slots; outdated assignments are omitted from the result.</summary>
        internal List<Assignment> Assign(IEnumerable<Assignment> assignments)
        {
            var taken = new List<Assignment>();
            foreach (Assignment assignment in assignments)
            {
                Assignment known;
                bool there = contents.TryGetValue(assignment.Mid, out known);
                if (there ? assignment.Generation >= known.Generation : contents.Count < Limits.Slots)
                {
                    contents[assignment.Mid] = assignment;
                    taken.Add(assignment);
                }
            }
            return taken;
        }

        /// <summary>Returns the content of a slot in that generation; null if it is idle or has other content by now.</summary>
        internal Assignment Carried(string mid, long generation)
        {
            Assignment known;
            return contents.TryGetValue(mid, out known) && known.Generation == generation && known.Participant != "" ? known : null;
        }
    }
}
