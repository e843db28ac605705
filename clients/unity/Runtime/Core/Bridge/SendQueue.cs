using System;
using System.Collections.Generic;

namespace Volsfu.Bridge
{
    /// <summary>
    /// The queue of pieces for the bridge. Scene datagrams precede sound and texts, and these the frames of tiles in
    /// their order of arrival. One frame of each tile and quality may wait: a newer one replaces it, since the older
    /// would be late. It is for one thread at a time.
    /// </summary>
    public sealed class SendQueue
    {
        /// <summary>The maximum number of waiting sound frames and texts; beyond it, the oldest are dropped.</summary>
        public const int MaxUrgent = 64;

        struct Waiting
        {
            internal Packet Packet;
            internal string Text;
        }

        readonly int tiles, qualities;
        readonly uint client;
        readonly Queue<Waiting> urgent = new Queue<Waiting>();
        readonly List<Packet> frames = new List<Packet>();
        readonly SceneBook scene;
        readonly ChoiceText choices = new ChoiceText();
        Waiting current;
        bool busy;
        uint soundNumber;

        /// <summary>Creates a queue for the given numbers of tiles and qualities, and the number of the client.</summary>
        public SendQueue(uint client, int tiles, int qualities)
        {
            this.client = client;
            this.tiles = tiles;
            this.qualities = qualities;
            scene = new SceneBook(tiles);
        }

        /// <summary>The viewpoint and the poses.</summary>
        public SceneBook Scene { get { return scene; } }

        /// <summary>Frames that were dropped because newer ones arrived before they were sent.</summary>
        public long Dropped { get; private set; }

        /// <summary>Whether the queue is empty.</summary>
        public bool IsEmpty { get { return !busy && urgent.Count == 0 && frames.Count == 0 && scene.IsEmpty; } }

        /// <summary>Adds a frame of a tile. The bytes are not copied: they must remain unchanged.</summary>
        public void AddTile(int tile, int quality, uint number, byte[] frame)
        {
            if (tile < 0 || tile >= tiles || quality < 0 || quality >= qualities)
            {
                throw new ProtocolException("tile " + tile + " at quality " + quality + ": the bridge was started with " + tiles + " tiles and " + qualities + " qualities");
            }
            Check(frame);
            Packet packet = Whole(frame, false, number);
            packet.Tile = (uint)tile;
            packet.Quality = (uint)quality;
            int older = frames.FindIndex(f => f.Tile == packet.Tile && f.Quality == packet.Quality && f.Offset == 0);
            if (older >= 0)
            {
                frames.RemoveAt(older);
                Dropped++;
            }
            frames.Add(packet);
        }

        /// <summary>Adds a frame of sound, which is numbered here. The bytes are not copied.</summary>
        public void AddAudio(byte[] frame)
        {
            Check(frame);
            AddUrgent(new Waiting { Packet = Whole(frame, true, soundNumber++) });
        }

        /// <summary>
        /// Adds a choice of qualities, and queues the text of all choices so far. Invalid choices change nothing.
        /// </summary>
        public void Choose(uint client, int[] qualities)
        {
            choices.Choose(client, qualities);
            AddUrgent(new Waiting { Text = choices.Text });
        }

        /// <summary>Queues the choices and the scene for a new bridge.</summary>
        public void Remind()
        {
            scene.Remind();
            if (choices.Text != "")
            {
                AddUrgent(new Waiting { Text = choices.Text });
            }
        }

        /// <summary>Fills Datagram.Size bytes with the next datagram; returns false if the queue is empty.</summary>
        public bool Next(byte[] datagram)
        {
            if (scene.Next(datagram))
            {
                return true;
            }
            // Sound does not wait for the end of a large frame; pieces of different frames may be interleaved.
            if (urgent.Count > 0 && (!busy || !current.Packet.Audio))
            {
                if (urgent.Peek().Text != null)
                {
                    Datagram.WriteText(datagram, urgent.Dequeue().Text);
                    return true;
                }
                if (busy)
                {
                    frames.Insert(0, current.Packet);
                }
                current = urgent.Dequeue();
                busy = true;
            }
            if (!busy)
            {
                if (frames.Count == 0)
                {
                    return false;
                }
                current = new Waiting { Packet = frames[0] };
                frames.RemoveAt(0);
                busy = true;
            }
            Cut(datagram);
            return true;
        }

        /// <summary>Clears the queue without a bridge.</summary>
        public void Clear()
        {
            Dropped += frames.Count + urgent.Count + (busy ? 1 : 0);
            frames.Clear();
            urgent.Clear();
            scene.Clear();
            busy = false;
        }

        void Cut(byte[] datagram)
        {
            current.Packet.Size = Math.Min(current.Packet.Audio ? Datagram.AudioData : Datagram.TileData, (int)(current.Packet.Length - current.Packet.Offset));
            Datagram.WritePacket(datagram, ref current.Packet);
            current.Packet.Offset += (uint)current.Packet.Size;
            current.Packet.Begin += current.Packet.Size;
            busy = current.Packet.Offset < current.Packet.Length;
        }

        Packet Whole(byte[] frame, bool audio, uint number)
        {
            return new Packet { Audio = audio, Client = client, Frame = number, Length = (uint)frame.Length, Buffer = frame };
        }

        void AddUrgent(Waiting waiting)
        {
            if (urgent.Count >= MaxUrgent)
            {
                urgent.Dequeue();
                Dropped++;
            }
            urgent.Enqueue(waiting);
        }

        static void Check(byte[] frame)
        {
            FrameHeader header;
            if (frame.Length > FrameAssembler.MaxFrame || !FrameHeader.TryRead(frame, frame.Length, out header) || header.Length != frame.Length - FrameHeader.Size)
            {
                throw new ProtocolException("frame of " + frame.Length +
                    " bytes: expected a frame header and the data that it announces, together up to " + FrameAssembler.MaxFrame + " bytes");
            }
        }
    }
}
