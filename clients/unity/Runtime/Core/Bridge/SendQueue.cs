using System;
using System.Collections.Generic;

namespace Volsfu.Bridge
{
    /// <summary>
    /// What waits to be sent to the bridge, as pieces. Where things are goes first, then sound and texts, then the frames of tiles in the order in which they
    /// came. Of each tile and quality one frame may wait: a newer one takes its place, since the older would be late. It is for one thread at a time.
    /// </summary>
    public sealed class SendQueue
    {
        /// <summary>Frames of sound and texts that wait at most; the oldest are dropped.</summary>
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

        /// <summary>A queue for so many tiles at so many qualities of a client of that number.</summary>
        public SendQueue(uint client, int tiles, int qualities)
        {
            this.client = client;
            this.tiles = tiles;
            this.qualities = qualities;
            scene = new SceneBook(tiles);
        }

        /// <summary>Where things are.</summary>
        public SceneBook Scene { get { return scene; } }

        /// <summary>Frames that were dropped because newer ones came before they could be sent.</summary>
        public long Dropped { get; private set; }

        /// <summary>Whether nothing waits.</summary>
        public bool IsEmpty { get { return !busy && urgent.Count == 0 && frames.Count == 0 && scene.IsEmpty; } }

        /// <summary>Takes a frame of a tile. The bytes are not copied: they must stay as they are.</summary>
        public void AddTile(int tile, int quality, uint number, byte[] frame)
        {
            if (tile < 0 || tile >= tiles || quality < 0 || quality >= qualities)
            {
                throw new ProtocolException("tile " + tile + " at quality " + quality + ": the bridge was told of " + tiles + " tiles and " + qualities + " qualities");
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

        /// <summary>Takes a frame of sound, which is numbered here. The bytes are not copied.</summary>
        public void AddAudio(byte[] frame)
        {
            Check(frame);
            AddUrgent(new Waiting { Packet = Whole(frame, true, soundNumber++) });
        }

        /// <summary>Takes a choice of qualities, and has the text of all choices so far told. What is refused changes nothing.</summary>
        public void Choose(uint client, int[] qualities)
        {
            choices.Choose(client, qualities);
            AddUrgent(new Waiting { Text = choices.Text });
        }

        /// <summary>Has a bridge that has just come told what was chosen, and where things are.</summary>
        public void Remind()
        {
            scene.Remind();
            if (choices.Text != "")
            {
                AddUrgent(new Waiting { Text = choices.Text });
            }
        }

        /// <summary>Fills Datagram.Size bytes with the next datagram; false where nothing waits.</summary>
        public bool Next(byte[] datagram)
        {
            if (scene.Next(datagram))
            {
                return true;
            }
            // Sound does not wait for the end of a large frame, whose pieces may be put together in any company.
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

        /// <summary>Forgets what waits: nobody is there to take it.</summary>
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
