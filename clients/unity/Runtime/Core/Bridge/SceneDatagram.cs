using System;
using System.Runtime.InteropServices;
using Volsfu.Signalling;

namespace Volsfu.Bridge
{
    /// <summary>
    /// Writes the datagrams that tell a bridge where the program looks from and where its object stands. Numbers are of four bytes, little-endian, those with
    /// fractions IEEE 754; places are in the room's coordinates. It keeps no state.
    /// </summary>
    public static class SceneDatagram
    {
        /// <summary>The boxes that one datagram has room for.</summary>
        public const int MaxBoxes = (Datagram.Size - 4 - objectSize) / boxSize;

        const uint viewType = 16, objectType = 17;
        const int objectSize = 10 * 4, boxSize = 6 * 4;

        /// <summary>The scales that servers take.</summary>
        const double minScale = 0.001, maxScale = 1000;

        [StructLayout(LayoutKind.Explicit)]
        struct Fraction
        {
            [FieldOffset(0)] internal float Value;
            [FieldOffset(0)] internal uint Bits;
        }

        /// <summary>Fills Datagram.Size bytes with a viewpoint. Throws ProtocolException for one that cannot be.</summary>
        public static void WriteView(byte[] datagram, Viewpoint viewpoint)
        {
            viewpoint.Check();
            Array.Clear(datagram, 0, Datagram.Size);
            Datagram.WriteNumber(datagram, 0, viewType);
            int at = Write(datagram, 4, viewpoint.Position);
            at = Write(datagram, at, viewpoint.Orientation);
            at = Write(datagram, at, viewpoint.FieldOfView);
            Write(datagram, at, viewpoint.Aspect);
        }

        /// <summary>
        /// Fills Datagram.Size bytes with where an object stands, and the boxes of its tiles from the first one on, as many as there is room for; it returns how
        /// many those are. Throws ProtocolException for what cannot be.
        /// </summary>
        public static int WriteObject(byte[] datagram, ObjectPose pose, Tile[] tiles, int first)
        {
            double scale = pose.Scale == 0 ? 1 : pose.Scale;
            Checks.Vector("position", pose.Position, 3);
            Checks.Vector("orientation", pose.Orientation, 4);
            Checks.Range("scale", scale, minScale, maxScale);
            int count = Math.Min(MaxBoxes, tiles.Length - first);
            Array.Clear(datagram, 0, Datagram.Size);
            Datagram.WriteNumber(datagram, 0, objectType);
            int at = Write(datagram, 4, pose.Position);
            at = Write(datagram, at, pose.Orientation);
            at = Write(datagram, at, scale);
            Datagram.WriteNumber(datagram, at, (uint)first);
            Datagram.WriteNumber(datagram, at + 4, (uint)count);
            at += 8;
            for (int i = first; i < first + count; i++)
            {
                at = Write(datagram, at, Checks.Vector("box", tiles[i].Min, 3));
                at = Write(datagram, at, Checks.Vector("box", tiles[i].Max, 3));
            }
            return count;
        }

        static int Write(byte[] datagram, int at, double[] numbers)
        {
            foreach (double number in numbers)
            {
                at = Write(datagram, at, number);
            }
            return at;
        }

        static int Write(byte[] datagram, int at, double number)
        {
            Datagram.WriteNumber(datagram, at, new Fraction { Value = (float)number }.Bits);
            return at + 4;
        }
    }
}
