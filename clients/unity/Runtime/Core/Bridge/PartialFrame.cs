using System;
using System.Buffers;
using System.Collections.Generic;

namespace Volsfu.Bridge
{
    enum Placed { Taken, Duplicate, Contradiction }

    /// <summary>
    /// An incomplete frame. Its memory grows with the received bytes, independent of its announced length and the
    /// offsets of its pieces.
    /// </summary>
    sealed class PartialFrame
    {
        /// <summary>
        /// The initial memory of a frame with at least that length, and the maximum distance of a piece beyond twice
        /// the received bytes. Most pieces arrive in order, and a single one must not reserve the 16 MiB of a whole
        /// frame.
        /// </summary>
        internal const int FirstReserve = 256 << 10;
        /// <summary>The maximum number of pieces with gaps between them.</summary>
        const int maxGaps = 64;

        static readonly byte[] empty = new byte[0];

        struct Piece
        {
            internal int Begin, End;
        }

        /// <summary>The received parts in order, without adjacent ones.</summary>
        readonly List<Piece> pieces = new List<Piece>();
        readonly int length;
        int come;

        internal PartialFrame(FrameStream stream, ref Packet packet, long now)
        {
            Stream = stream;
            Number = packet.Frame;
            Quality = packet.Quality;
            Began = now;
            length = (int)packet.Length;
            Data = empty;
        }

        internal FrameStream Stream { get; }
        internal uint Number { get; }
        internal uint Quality { get; }
        internal long Began { get; }
        internal byte[] Data { get; private set; }
        internal int Held { get { return Data.Length; } }
        internal int Length { get { return length; } }

        internal bool IsComplete { get { return length == 0 || (pieces.Count == 1 && pieces[0].Begin == 0 && pieces[0].End == length); } }

        /// <summary>Copies a piece to its position if it is consistent with the present ones.</summary>
        internal Placed Place(ref Packet packet)
        {
            if (packet.Length != length)
            {
                return Placed.Contradiction;
            }
            if (length == 0)
            {
                return Placed.Taken;
            }
            var piece = new Piece { Begin = (int)packet.Offset, End = (int)packet.Offset + packet.Size };
            if (piece.End > 2L * come + FirstReserve)
            {
                return Placed.Contradiction;
            }
            Placed placed = Note(piece);
            if (placed == Placed.Taken)
            {
                come += packet.Size;
                Reserve(piece.End);
                Buffer.BlockCopy(packet.Buffer, packet.Begin, Data, piece.Begin, packet.Size);
            }
            return placed;
        }

        Placed Note(Piece piece)
        {
            int first = pieces.FindIndex(p => p.End >= piece.Begin);
            first = first < 0 ? pieces.Count : first;
            // The pieces from first to behind touch the new one.
            int behind = first;
            Piece merged = piece;
            for (; behind < pieces.Count && pieces[behind].Begin <= piece.End; behind++)
            {
                Piece other = pieces[behind];
                if (other.Begin <= piece.Begin && other.End >= piece.End)
                {
                    return Placed.Duplicate;
                }
                if (other.Begin < piece.End && other.End > piece.Begin)
                {
                    return Placed.Contradiction;
                }
                merged = new Piece { Begin = Math.Min(merged.Begin, other.Begin), End = Math.Max(merged.End, other.End) };
            }
            if (first == behind && pieces.Count == maxGaps)
            {
                return Placed.Contradiction;
            }
            pieces.RemoveRange(first, behind - first);
            pieces.Insert(first, merged);
            return Placed.Taken;
        }

        void Reserve(int bytes)
        {
            if (bytes <= Data.Length)
            {
                return;
            }
            int size = Math.Min(length, Math.Max(Math.Max(bytes, FirstReserve), 2 * Data.Length));
            byte[] grown = ArrayPool<byte>.Shared.Rent(size);
            Buffer.BlockCopy(Data, 0, grown, 0, Data.Length);
            Free();
            Data = grown;
        }

        /// <summary>Returns the memory to the pool.</summary>
        internal void Free()
        {
            if (Data.Length > 0)
            {
                ArrayPool<byte>.Shared.Return(Data);
                Data = empty;
            }
        }
    }
}
