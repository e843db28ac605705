using System;
using System.Runtime.InteropServices;
using Volsfu.Signalling;

namespace Volsfu.Bridge
{
    /// <summary>
    /// Writes the datagrams with the viewpoint and the object's pose for the bridge. Numbers have four bytes,
    /// little-endian, fractions in IEEE 754; positions are in the room's coordinates. The class has no state.
    /// </summary>
    public static class SceneDatagram
    {
        /// <summary>The number of boxes that fit into one datagram.</summary>
        public const int MaxBoxes = (Datagram.Size - 4 - objectSize) / boxSize;

        const uint viewType = 16, objectType = 17;
        const int objectSize = 10 * 4, boxSize = 6 * 4;

        /// <summary>The scales that servers accept.</summary>
        const double minScale = 0.001, maxScale = 1000;

        [StructLayout(LayoutKind.Explicit)]
        struct Fraction
        {
            [FieldOffset(0)] internal float Value;
            [FieldOffset(0)] internal uint Bits;
        }

        /// <summary>Fills Datagram.Size bytes with a viewpoint. Throws ProtocolException if it is invalid.</summary>
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
        /// Fills Datagram.Size bytes with the pose of an object, and as many boxes of its tiles from the first one on
        /// as fit; returns their number. Throws ProtocolException for invalid values.
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
