using System;
using System.Collections.Generic;
using Volsfu.Signalling;

namespace Volsfu.Bridge
{
    /// <summary>
    /// The latest viewpoint and object pose of the program, as datagrams for the bridge. Only the newest counts: values
    /// set faster than they are sent are replaced. It is for one thread at a time.
    /// </summary>
    public sealed class SceneBook
    {
        readonly int tiles;
        readonly byte[] view = new byte[Datagram.Size], scratch = new byte[Datagram.Size];
        readonly List<byte[]> placed = new List<byte[]>();
        bool viewKnown, viewWaits;
        /// <summary>The number of sent datagrams of the object.</summary>
        int placedSent;

        /// <summary>Creates the book for an object with the given number of tiles and without a pose.</summary>
        public SceneBook(int tiles)
        {
            this.tiles = tiles;
        }

        /// <summary>Whether everything was sent.</summary>
        public bool IsEmpty { get { return !viewWaits && placedSent == placed.Count; } }

        /// <summary>Sets the viewpoint. Throws ProtocolException, and changes nothing, if it is invalid.</summary>
        public void Look(Viewpoint viewpoint)
        {
            SceneDatagram.WriteView(scratch, viewpoint);
            Array.Copy(scratch, view, scratch.Length);
            viewKnown = viewWaits = true;
        }

        /// <summary>
        /// Sets the pose of the object, and the boxes of its tiles in its own coordinates, or none if the previous ones
        /// remain or none are known. Throws ProtocolException, and changes nothing, for invalid values, and if there is
        /// not one box for each tile.
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

        /// <summary>Fills Datagram.Size bytes with the next datagram; returns false if there is none.</summary>
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

        /// <summary>Stops sending without a bridge: the state waits for Remind.</summary>
        public void Clear()
        {
            viewWaits = false;
            placedSent = placed.Count;
        }

        /// <summary>Sends everything again, to a new bridge.</summary>
        public void Remind()
        {
            viewWaits = viewKnown;
            placedSent = 0;
        }
    }
}
