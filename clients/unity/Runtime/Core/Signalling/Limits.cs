using System;
using System.Text;

namespace Volsfu.Signalling
{
    /// <summary>
    /// The limits of signalling v1 (docs/signalling.md, "Limits") that do not depend on a server's configuration.
    /// </summary>
    public static class Limits
    {
        /// <summary>Bytes of a name or media type.</summary>
        public const int Name = 128;
        /// <summary>Characters of a codec's parameters.</summary>
        public const int Format = 1024;
        /// <summary>Bytes of a message.</summary>
        public const int Message = 2 << 20;
        /// <summary>Tiles of a publication.</summary>
        public const int Tiles = 256;
        /// <summary>Qualities of a publication.</summary>
        public const int Qualities = 64;
        /// <summary>Publications of a participant, and in one join.</summary>
        public const int Publications = 64;
        /// <summary>Slots of a receiver, and choices in one message.</summary>
        public const int Slots = 4096;
        /// <summary>Characters of a media line's mid.</summary>
        public const int Mid = 64;
        /// <summary>Bit/s.</summary>
        public const long Bitrate = 1000000000000;
        /// <summary>Servers in a list, and moves to another server in succession.</summary>
        public const int Servers = 8;
        /// <summary>Characters of an address of a server.</summary>
        public const int Url = 2048;
        /// <summary>Metres from the origin.</summary>
        public const double Coordinate = 1000000;
        /// <summary>The maximum number of stored participants of one room, far above the limits of servers.</summary>
        public const int Participants = 10000;
    }

    /// <summary>Checks of the program's requests, so that mistakes are reported to the caller.</summary>
    static class Checks
    {
        internal static string Name(string what, string name)
        {
            int bytes = name == null ? 0 : Encoding.UTF8.GetByteCount(name);
            Range("bytes of the name of a " + what, bytes, 1, Limits.Name);
            if (name == "." || name == "..")
            {
                throw new ProtocolException("name of a " + what + ": \"" + name + "\" has another meaning in paths");
            }
            foreach (char c in name)
            {
                if (char.IsControl(c) || c == '\ufffd')
                {
                    throw new ProtocolException("name of a " + what + ": expected no control characters");
                }
            }
            return name;
        }

        internal static string OptionalName(string what, string name)
        {
            return string.IsNullOrEmpty(name) ? "" : Name(what, name);
        }

        internal static void Range(string what, double value, double least, double most)
        {
            if (!(value >= least && value <= most))
            {
                throw new ProtocolException(what + ": " + value + ", expected " + least + " to " + most);
            }
        }

        internal static double[] Vector(string what, double[] vector, int count)
        {
            if (vector == null || vector.Length != count)
            {
                throw new ProtocolException(what + ": expected " + count + " numbers");
            }
            foreach (double component in vector)
            {
                Range(what, component, -Limits.Coordinate, Limits.Coordinate);
            }
            return vector;
        }
    }
}
