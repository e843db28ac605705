using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Volsfu.Bridge
{
    /// <summary>
    /// The choices of quality in force, as the text of one control datagram: CLIENT,QUALITY OF TILE 0,QUALITY OF TILE
    /// 1,…;CLIENT,… A bridge keeps the newest text for later publishers, so each text contains all choices; if they
    /// exceed one datagram, the latest ones. It is for one thread at a time.
    /// </summary>
    public sealed class ChoiceText
    {
        /// <summary>The value for a tile that keeps its quality.</summary>
        public const int Keep = -2;

        readonly LinkedList<KeyValuePair<uint, string>> newestFirst = new LinkedList<KeyValuePair<uint, string>>();

        /// <summary>
        /// Stores a choice for a publisher, which replaces an earlier one: a quality for each tile in their order, -1
        /// for off, or Keep.
        /// </summary>
        public void Choose(uint client, int[] qualities)
        {
            if (qualities.Length < 1 || qualities.Length > 256)
            {
                throw new ProtocolException("choice of " + qualities.Length + " tiles: expected 1 to 256");
            }
            var text = new StringBuilder(client.ToString(CultureInfo.InvariantCulture));
            foreach (int quality in qualities)
            {
                if (quality < Keep || quality > 63)
                {
                    throw new ProtocolException("quality " + quality + ": expected -1 to 63");
                }
                text.Append(',').Append(quality == Keep ? "" : quality.ToString(CultureInfo.InvariantCulture));
            }
            for (LinkedListNode<KeyValuePair<uint, string>> node = newestFirst.First; node != null; node = node.Next)
            {
                if (node.Value.Key == client)
                {
                    newestFirst.Remove(node);
                    break;
                }
            }
            newestFirst.AddFirst(new KeyValuePair<uint, string>(client, text.Append(';').ToString()));
            while (Total() > Datagram.MaxText)
            {
                newestFirst.RemoveLast();
            }
        }

        /// <summary>The text for the bridge; empty without choices.</summary>
        public string Text
        {
            get
            {
                var text = new StringBuilder();
                foreach (KeyValuePair<uint, string> choice in newestFirst)
                {
                    text.Append(choice.Value);
                }
                return text.ToString();
            }
        }

        int Total()
        {
            int total = 0;
            foreach (KeyValuePair<uint, string> choice in newestFirst)
            {
                total += choice.Value.Length;
            }
            return total;
        }
    }
}
