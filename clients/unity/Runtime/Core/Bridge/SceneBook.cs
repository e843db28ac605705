using System;
using System.Collections.Generic;
using Volsfu.Signalling;

namespace Volsfu.Bridge
{
    /// <summary>
    /// What the program said last of where it looks from and where its object stands, as the datagrams that tell the bridge. Only the newest counts: what is said
    /// faster than it is sent is replaced. It is for one thread at a time.
    /// </summary>
    public sealed class SceneBook
    {
        readonly int tiles;
        readonly byte[] view = new byte[Datagram.Size], scratch = new byte[Datagram.Size];
        readonly List<byte[]> placed = new List<byte[]>();
        bool viewKnown, viewWaits;
        /// <summary>How many of the object's datagrams have been sent.</summary>
        int placedSent;

        /// <summary>For an object of so many tiles, which has not been placed.</summary>
        public SceneBook(int tiles)
        {
            this.tiles = tiles;
        }

        /// <summary>Whether everything was sent.</summary>
        public bool IsEmpty { get { return !viewWaits && placedSent == placed.Count; } }

        /// <summary>Takes where the program looks from. Throws ProtocolException, and changes nothing, where that cannot be.</summary>
        public void Look(Viewpoint viewpoint)
        {
            SceneDatagram.WriteView(scratch, viewpoint);
            Array.Copy(scratch, view, scratch.Length);
            viewKnown = viewWaits = true;
        }

        /// <summary>
        /// Takes where the object stands, and the boxes of its tiles in its own coordinates, or none if those said before still hold, or nobody knows. Throws
        /// ProtocolException, and changes nothing, for what cannot be, and where there is not one box for each tile.
        /// </summary>
        public void Place(ObjectPose pose, params Tile[] boxes)
        {
            if (boxes.Length != 0 && boxes.Length != tiles)
            {
                throw new ProtocolException(boxes.Length + " boxes, expected one for each of " + tiles + " tiles, or none");
            }
            var datagrams = new List<byte[]>();
            int first = 0;
            do
            {
                byte[] datagram = new byte[Datagram.Size];
                first += SceneDatagram.WriteObject(datagram, pose, boxes, first);
                datagrams.Add(datagram);
            } while (first < boxes.Length);
            placed.Clear();
            placed.AddRange(datagrams);
            placedSent = 0;
        }

        /// <summary>Fills Datagram.Size bytes with what waits; false where nothing does.</summary>
        public bool Next(byte[] datagram)
        {
            if (viewWaits)
            {
                viewWaits = false;
                Array.Copy(view, datagram, view.Length);
                return true;
            }
            if (placedSent == placed.Count)
            {
                return false;
            }
            Array.Copy(placed[placedSent++], datagram, Datagram.Size);
            return true;
        }

        /// <summary>Nobody is there to be told: what is known waits for Remind.</summary>
        public void Clear()
        {
            viewWaits = false;
            placedSent = placed.Count;
        }

        /// <summary>Has everything told anew: to a bridge that has just come.</summary>
        public void Remind()
        {
            viewWaits = viewKnown;
            placedSent = 0;
        }
    }
}
