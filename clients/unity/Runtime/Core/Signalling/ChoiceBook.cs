using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>
    /// The choices in force, for a session that could not be resumed. Their number is limited to that of the server.
    /// </summary>
    sealed class ChoiceBook
    {
        readonly Dictionary<string, SortedDictionary<int, Choice>> publications = new Dictionary<string, SortedDictionary<int, Choice>>();
        int count;

        /// <summary>
        /// Records a choice. One for a whole publication replaces those for its tiles. Choices beyond the limit are not
        /// stored.
        /// </summary>
        internal void Note(Choice choice)
        {
            string key = choice.Participant + "\0" + choice.Publication;
            SortedDictionary<int, Choice> tiles;
            if (!publications.TryGetValue(key, out tiles))
            {
                tiles = publications[key] = new SortedDictionary<int, Choice>();
            }
            int tile = choice.Tile < 0 ? -1 : choice.Tile;
            if (tile < 0)
            {
                count -= tiles.Count;
                tiles.Clear();
            }
            bool there = tiles.ContainsKey(tile);
            if (there || count < Limits.Slots)
            {
                tiles[tile] = choice;
                count += there ? 0 : 1;
            }
            if (tiles.Count == 0)
            {
                publications.Remove(key);
            }
        }

        /// <summary>Returns all choices, each publication's own before those for its tiles.</summary>
        internal List<Choice> All()
        {
            var all = new List<Choice>(count);
            foreach (SortedDictionary<int, Choice> tiles in publications.Values)
            {
                all.AddRange(tiles.Values);
            }
            return all;
        }
    }
}
