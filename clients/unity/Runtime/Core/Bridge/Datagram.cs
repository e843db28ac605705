using System;
using System.Text;

namespace Volsfu.Bridge
{
    /// <summary>The types of datagrams between a program and its bridge.</summary>
    public enum DatagramType : uint
    {
        /// <summary>The bridge is ready; the program answers with the same type.</summary>
        Ready = 0,
        /// <summary>A piece of a tile's frame, in both directions.</summary>
        Tile = 1,
        /// <summary>A piece of a frame of sound, in both directions.</summary>
        Audio = 2,
        /// <summary>The text of a quality choice, to the bridge.</summary>
        Control = 3
    }

    /// <summary>
    /// A piece of a frame. Its header follows the datagram's type, with numbers of four bytes, little-endian: client,
    /// frame number, frame length, offset, length of the data here; for tiles also tile and quality.
    /// </summary>
    public struct Packet
    {
        /// <summary>Whether the piece is sound, which has neither tile nor quality.</summary>
        public bool Audio;
        /// <summary>The publisher's number.</summary>
        public uint Client;
        /// <summary>The frame's number on its stream.</summary>
        public uint Frame;
        /// <summary>The length of the whole frame in bytes.</summary>
        public uint Length;
        /// <summary>The offset of this piece within the frame.</summary>
        public uint Offset;
        public uint Tile;
        public uint Quality;
        /// <summary>The piece is Size bytes of Buffer from Begin on.</summary>
        public byte[] Buffer;
        public int Begin;
        public int Size;
    }

    /// <summary>
    /// Reads and writes the UDP datagrams between a program and its bridge on one machine: a type of four bytes, a
    /// body, and zeros up to 1300 bytes. They are those of VR2Gather's native connector, so that a program can use its
    /// peer as well. The class has no state.
    /// </summary>
    public static class Datagram
    {
        /// <summary>The padded size of every datagram.</summary>
        public const int Size = 1300;
        /// <summary>The maximum size of a received datagram.</summary>
        public const int MaxSize = 1500;
        /// <summary>The maximum number of frame bytes in one datagram.</summary>
        public const int TileData = 1144, AudioData = 1152;
        /// <summary>The maximum length of a control datagram's text in bytes.</summary>
        public const int MaxText = Size - typeSize;

        /// <summary>The bounds of a secret, in bytes of UTF-8.</summary>
        public const int MinSecret = 16, MaxSecret = 128;

        /// <summary>
        /// The type of the datagram that presents a secret to the bridge. VR2Gather's own peer does not support it.
        /// </summary>
        const uint secretType = 18;
        const int typeSize = 4;
        const int tileHeader = 28, audioHeader = 20;

        /// <summary>Returns the type of a datagram; false if it is too short, too long, or of unknown type.</summary>
        public static bool TryReadType(byte[] datagram, int count, out DatagramType type)
        {
            type = DatagramType.Ready;
            if (count < typeSize || count > MaxSize || count > datagram.Length)
            {
                return false;
            }
            type = (DatagramType)ReadNumber(datagram, 0);
            return type <= DatagramType.Control;
        }

        /// <summary>
        /// Returns the piece in a datagram of the types Tile and Audio. It refers to the datagram's bytes. Returns
        /// false if the header is inconsistent, so that Offset + Size is always within Length.
        /// </summary>
        public static bool TryReadPacket(byte[] datagram, int count, bool audio, out Packet packet)
        {
            packet = new Packet { Audio = audio, Buffer = datagram, Begin = typeSize + (audio ? audioHeader : tileHeader) };
            if (count < packet.Begin || count > datagram.Length)
            {
                return false;
            }
            packet.Client = ReadNumber(datagram, typeSize);
            packet.Frame = ReadNumber(datagram, typeSize + 4);
            packet.Length = ReadNumber(datagram, typeSize + 8);
            packet.Offset = ReadNumber(datagram, typeSize + 12);
            uint size = ReadNumber(datagram, typeSize + 16);
            if (!audio)
            {
                packet.Tile = ReadNumber(datagram, typeSize + 20);
                packet.Quality = ReadNumber(datagram, typeSize + 24);
            }
            if (size > count - packet.Begin || size > (audio ? AudioData : TileData) || (ulong)packet.Offset + size > packet.Length)
            {
                return false;
            }
            packet.Size = (int)size;
            return size > 0 || packet.Length == 0;
        }

        /// <summary>Returns the text of a control datagram up to its first zero, without spaces around it.</summary>
        public static string ReadText(byte[] datagram, int count)
        {
            int end = Array.IndexOf(datagram, (byte)0, typeSize, count - typeSize);
            return Encoding.UTF8.GetString(datagram, typeSize, (end < 0 ? count : end) - typeSize).Trim();
        }

        /// <summary>Fills Size bytes with a ready datagram, which is all zeros.</summary>
        public static void WriteReady(byte[] datagram)
        {
            Array.Clear(datagram, 0, Size);
        }

        /// <summary>
        /// Fills Size bytes with the datagram that presents a secret, which replaces the ready datagram. Throws
        /// ProtocolException if the secret is shorter than MinSecret or longer than MaxSecret bytes of UTF-8.
        /// </summary>
        public static void WriteSecret(byte[] datagram, string secret)
        {
            byte[] bytes = Encoding.UTF8.GetBytes(secret);
            if (bytes.Length < MinSecret || bytes.Length > MaxSecret)
            {
                throw new ProtocolException("secret of " + bytes.Length + " bytes, expected " + MinSecret + " to " + MaxSecret);
            }
            Array.Clear(datagram, 0, Size);
            WriteNumber(datagram, 0, secretType);
            WriteNumber(datagram, typeSize, (uint)bytes.Length);
            System.Buffer.BlockCopy(bytes, 0, datagram, typeSize + 4, bytes.Length);
        }

        /// <summary>Fills Size bytes with a piece of a frame.</summary>
        public static void WritePacket(byte[] datagram, ref Packet packet)
        {
            int begin = typeSize + (packet.Audio ? audioHeader : tileHeader);
            WriteNumber(datagram, 0, (uint)(packet.Audio ? DatagramType.Audio : DatagramType.Tile));
            WriteNumber(datagram, typeSize, packet.Client);
            WriteNumber(datagram, typeSize + 4, packet.Frame);
            WriteNumber(datagram, typeSize + 8, packet.Length);
            WriteNumber(datagram, typeSize + 12, packet.Offset);
            WriteNumber(datagram, typeSize + 16, (uint)packet.Size);
            if (!packet.Audio)
            {
                WriteNumber(datagram, typeSize + 20, packet.Tile);
                WriteNumber(datagram, typeSize + 24, packet.Quality);
            }
            System.Buffer.BlockCopy(packet.Buffer, packet.Begin, datagram, begin, packet.Size);
            Array.Clear(datagram, begin + packet.Size, Size - begin - packet.Size);
        }

        /// <summary>Fills Size bytes with a text. Throws ProtocolException if it is longer than MaxText bytes of UTF-8.</summary>
        public static void WriteText(byte[] datagram, string text)
        {
            byte[] bytes = Encoding.UTF8.GetBytes(text);
            if (bytes.Length > MaxText)
            {
                throw new ProtocolException("control text of " + bytes.Length + " bytes, expected at most " + MaxText);
            }
            WriteNumber(datagram, 0, (uint)DatagramType.Control);
            System.Buffer.BlockCopy(bytes, 0, datagram, typeSize, bytes.Length);
            Array.Clear(datagram, typeSize + bytes.Length, Size - typeSize - bytes.Length);
        }

        internal static uint ReadNumber(byte[] from, int at)
        {
            return (uint)(from[at] | from[at + 1] << 8 | from[at + 2] << 16 | from[at + 3] << 24);
        }

        internal static void WriteNumber(byte[] to, int at, uint number)
        {
            to[at] = (byte)number;
            to[at + 1] = (byte)(number >> 8);
            to[at + 2] = (byte)(number >> 16);
            to[at + 3] = (byte)(number >> 24);
        }
    }
}
