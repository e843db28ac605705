using System;
using Volsfu.Bridge;

namespace Volsfu
{
    /// <summary>
    /// Reads and writes "cwi0", VR2Gather's uncompressed point clouds, which volsfu's other clients read as well: a
    /// header of 32 bytes ("cpcd", version, capture time in milliseconds, size of a point, 4 unused bytes, number of
    /// bytes that follow), then 16 bytes per point: x, y, z as 32-bit floats in metres, in the room's kind of
    /// coordinates, red, green, blue, and a byte for tile or cameras; all little-endian.
    /// </summary>
    public static class RawPoints
    {
        /// <summary>The codec's name in frame headers.</summary>
        public const string Codec = "cwi0";
        /// <summary>The bytes before the points, and of each point.</summary>
        public const int HeaderBytes = 32, PointBytes = 16;
        /// <summary>The maximum number of points in a frame.</summary>
        public const int MaxPoints = (FrameAssembler.MaxFrame - FrameHeader.Size - HeaderBytes) / PointBytes;

        const uint mark = 0x64637063, version = 0x20210208;

        /// <summary>
        /// Returns a whole frame of count points for BridgeClient.SendTile: positions are x, y, z one after the other
        /// in Unity's coordinates, colours are red, green, blue.
        /// </summary>
        public static byte[] Frame(float[] positions, byte[] colors, int count, long captureMilliseconds)
        {
            if (count < 0 || count > MaxPoints || positions.Length < 3 * count || colors.Length < 3 * count)
            {
                throw new ProtocolException(count + " points with " + positions.Length + " coordinates and " + colors.Length +
                    " parts of colours: expected three each, and at most " + MaxPoints + " points");
            }
            int length = HeaderBytes + count * PointBytes;
            var frame = new byte[FrameHeader.Size + length];
            new FrameHeader { Codec = Codec, Length = length, CaptureMilliseconds = captureMilliseconds }.Write(frame);
            int at = FrameHeader.Size;
            Datagram.WriteNumber(frame, at, mark);
            Datagram.WriteNumber(frame, at + 4, version);
            Datagram.WriteNumber(frame, at + 8, (uint)captureMilliseconds);
            Datagram.WriteNumber(frame, at + 12, (uint)(captureMilliseconds >> 32));
            Datagram.WriteNumber(frame, at + 24, (uint)(count * PointBytes));
            at += HeaderBytes;
            var place = new float[3];
            for (int i = 0; i < count; i++, at += PointBytes)
            {
                place[0] = positions[3 * i];
                place[1] = positions[3 * i + 1];
                place[2] = -positions[3 * i + 2];
                Buffer.BlockCopy(place, 0, frame, at, 12);
                Buffer.BlockCopy(colors, 3 * i, frame, at + 12, 3);
            }
            return frame;
        }

        /// <summary>
        /// Reads the points of a frame of the given length into arrays, which grow if necessary; positions are in
        /// Unity's coordinates. Points with a coordinate that is not a number are omitted. Returns false if the frame
        /// is of another codec, or invalid.
        /// </summary>
        public static bool TryRead(byte[] frame, int length, ref float[] positions, ref byte[] colors, out int count)
        {
            count = 0;
            FrameHeader header;
            if (!FrameHeader.TryRead(frame, length, out header) || header.Codec != Codec || header.Length < HeaderBytes)
            {
                return false;
            }
            int at = FrameHeader.Size, bytes = header.Length - HeaderBytes;
            if (Datagram.ReadNumber(frame, at) != mark || Datagram.ReadNumber(frame, at + 4) != version || Datagram.ReadNumber(frame, at + 24) != bytes ||
                Datagram.ReadNumber(frame, at + 28) != 0 || bytes % PointBytes != 0)
            {
                return false;
            }
            int points = bytes / PointBytes;
            positions = positions.Length < 3 * points ? new float[3 * points] : positions;
            colors = colors.Length < 3 * points ? new byte[3 * points] : colors;
            at += HeaderBytes;
            for (int i = 0; i < points; i++, at += PointBytes)
            {
                Buffer.BlockCopy(frame, at, positions, 12 * count, 12);
                float sum = positions[3 * count] + positions[3 * count + 1] + positions[3 * count + 2];
                if (float.IsNaN(sum) || float.IsInfinity(sum))
                {
                    continue;
                }
                positions[3 * count + 2] = -positions[3 * count + 2];
                Buffer.BlockCopy(frame, at + 12, colors, 3 * count, 3);
                count++;
            }
            return true;
        }
    }
}
