using System;
using System.Collections.Generic;

namespace Volsfu.Bridge
{
    /// <summary>The results of pieces from the bridge.</summary>
    public struct AssemblyCounts
    {
        /// <summary>Complete frames.</summary>
        public long Frames;
        /// <summary>Duplicate pieces.</summary>
        public long Duplicates;
        /// <summary>
        /// Pieces that contradict their frame: another length, a part of another piece, too scattered, or far ahead of
        /// the received bytes.
        /// </summary>
        public long Contradictions;
        /// <summary>Pieces of frames that are complete or abandoned, or older than such frames.</summary>
        public long Late;
        /// <summary>Pieces of frames that are too long, or of more streams than permitted.</summary>
        public long TooMuch;
        /// <summary>Frames with lost pieces.</summary>
        public long Incomplete;
    }

    /// <summary>The state of one publisher's tile, or sound.</summary>
    sealed class FrameStream
    {
        /// <summary>A number up to this far behind the newest is late; a lower one belongs to a restarted bridge.</summary>
        const int lateWindow = 64;

        bool begun;
        uint newest;

        internal readonly List<PartialFrame> UnderWay = new List<PartialFrame>();

        internal bool IsLate(uint number)
        {
            int behind = unchecked((int)(newest - number));
            return begun && behind >= 0 && behind < lateWindow;
        }

        internal void Advance(uint number)
        {
            newest = number;
            begun = true;
        }
    }

    /// <summary>
    /// Assembles frames from pieces in any order; each piece counts once, and a frame is complete when it has every
    /// byte. Memory is bounded: it depends on the received bytes, not on announced lengths. Times are milliseconds. It
    /// is for one thread.
    /// </summary>
    public sealed class FrameAssembler
    {
        /// <summary>The maximum length of a frame in bytes.</summary>
        public const int MaxFrame = 16 << 20;
        /// <summary>The maximum bytes of all incomplete frames.</summary>
        public const int MaxHeld = 64 << 20;
        /// <summary>The maximum number of streams, one for each tile of each publisher.</summary>
        public const int MaxStreams = 4096;
        /// <summary>
        /// The time limit for the rest of a frame, in milliseconds: it is sent from the same machine without pauses.
        /// </summary>
        public const long Patience = 500;

        /// <summary>The maximum number of incomplete frames of one stream.</summary>
        const int maxUnderWay = 3;

        readonly Dictionary<ValueTuple<bool, uint, uint>, FrameStream> streams = new Dictionary<ValueTuple<bool, uint, uint>, FrameStream>();
        /// <summary>The incomplete frames of all streams, the oldest first.</summary>
        readonly List<PartialFrame> underWay = new List<PartialFrame>();
        AssemblyCounts counts;
        long held;

        /// <summary>The present bytes of all incomplete frames.</summary>
        public long Held { get { return held; } }

        /// <summary>The results of received pieces.</summary>
        public AssemblyCounts Counts { get { return counts; } }

        /// <summary>
        /// Adds a piece that Datagram.TryReadPacket accepted. Returns the frame that it completes, which the caller
        /// owns, or null.
        /// </summary>
        public ReceivedFrame Push(ref Packet packet, long now)
        {
            FrameStream stream = StreamOf(ref packet);
            if (stream == null)
            {
                counts.TooMuch++;
                return null;
            }
            uint number = packet.Frame, quality = packet.Quality;
            PartialFrame frame = stream.UnderWay.Find(f => f.Number == number && f.Quality == quality);
            if (frame == null && stream.IsLate(number))
            {
                counts.Late++;
                return null;
            }
            frame = frame ?? Begin(stream, ref packet, now);
            long before = frame.Held;
            Placed placed = frame.Place(ref packet);
            held += frame.Held - before;
            counts.Duplicates += placed == Placed.Duplicate ? 1 : 0;
            counts.Contradictions += placed == Placed.Contradiction ? 1 : 0;
            if (placed == Placed.Taken && frame.IsComplete)
            {
                return Finish(stream, frame, ref packet);
            }
            Shrink(frame);
            return null;
        }

        /// <summary>Abandons frames after the time limit.</summary>
        public void Expire(long now)
        {
            while (underWay.Count > 0 && now - underWay[0].Began >= Patience)
            {
                GiveUp(underWay[0]);
            }
        }

        /// <summary>Clears all state before data of a restarted bridge.</summary>
        public void Reset()
        {
            while (underWay.Count > 0)
            {
                GiveUp(underWay[0]);
            }
            streams.Clear();
        }

        FrameStream StreamOf(ref Packet packet)
        {
            if (packet.Length > MaxFrame || packet.Tile > ushort.MaxValue || packet.Quality > byte.MaxValue)
            {
                return null;
            }
            var key = ValueTuple.Create(packet.Audio, packet.Client, packet.Tile);
            FrameStream stream;
            if (!streams.TryGetValue(key, out stream) && streams.Count < MaxStreams)
            {
                stream = streams[key] = new FrameStream();
            }
            return stream;
        }

        PartialFrame Begin(FrameStream stream, ref Packet packet, long now)
        {
            if (stream.UnderWay.Count == maxUnderWay)
            {
                GiveUp(stream.UnderWay[0]);
            }
            var frame = new PartialFrame(stream, ref packet, now);
            stream.UnderWay.Add(frame);
            underWay.Add(frame);
            return frame;
        }

        ReceivedFrame Finish(FrameStream stream, PartialFrame frame, ref Packet packet)
        {
            Forget(frame);
            stream.Advance(frame.Number);
            // Frames of a stream are sent one after the other: those that started before this one have lost pieces.
            while (stream.UnderWay.Count > 0 && stream.IsLate(stream.UnderWay[0].Number))
            {
                GiveUp(stream.UnderWay[0]);
            }
            counts.Frames++;
            return new ReceivedFrame
            {
                Audio = packet.Audio,
                Client = packet.Client,
                Tile = (int)packet.Tile,
                Quality = (int)frame.Quality,
                Number = frame.Number,
                Data = frame.Data,
                Length = frame.Length
            };
        }

        /// <summary>Abandons the oldest frames while all together are too large, except the one that has just grown.</summary>
        void Shrink(PartialFrame grown)
        {
            while (held > MaxHeld && underWay.Count > 1)
            {
                GiveUp(underWay[0] == grown ? underWay[1] : underWay[0]);
            }
        }

        void GiveUp(PartialFrame frame)
        {
            Forget(frame);
            frame.Free();
            if (!frame.Stream.IsLate(frame.Number))
            {
                frame.Stream.Advance(frame.Number);
            }
            counts.Incomplete++;
        }

        void Forget(PartialFrame frame)
        {
            frame.Stream.UnderWay.Remove(frame);
            underWay.Remove(frame);
            held -= frame.Held;
        }
    }
}
