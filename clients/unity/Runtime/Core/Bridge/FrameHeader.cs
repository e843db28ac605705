namespace Volsfu.Bridge
{
    /// <summary>
    /// The 16 bytes that every frame through the bridge begins with: the codec's four characters in reverse order, the length of the data behind the header, and the
    /// capture time in milliseconds of UTC since 1970, little-endian.
    /// </summary>
    public struct FrameHeader
    {
        /// <summary>The header's size.</summary>
        public const int Size = 16;

        /// <summary>
        /// The codec in four ASCII characters, such as "cwi0" for raw points, "cwi1" for VR2Gather's octree, "VR2A" for
        /// sound.
        /// </summary>
        public string Codec;
        /// <summary>The bytes of the codec's data, without the header.</summary>
        public int Length;
        /// <summary>The capture time of the frame, in milliseconds of UTC since 1970; 0 if unknown.</summary>
        public long CaptureMilliseconds;

        /// <summary>
        /// Writes the header to the start of a frame. Throws ProtocolException for a codec that is not four ASCII
        /// characters.
        /// </summary>
        public void Write(byte[] frame)
        {
            if (Codec == null || Codec.Length != 4 || Length < 0 || CaptureMilliseconds < 0)
            {
                throw new ProtocolException("frame header: expected a codec of four characters, and neither length nor time below 0");
            }
            for (int i = 0; i < 4; i++)
            {
                if (Codec[i] < ' ' || Codec[i] > '~')
                {
                    throw new ProtocolException("frame header: expected a codec of ASCII characters");
                }
                frame[3 - i] = (byte)Codec[i];
            }
            Datagram.WriteNumber(frame, 4, (uint)Length);
            Datagram.WriteNumber(frame, 8, (uint)CaptureMilliseconds);
            Datagram.WriteNumber(frame, 12, (uint)(CaptureMilliseconds >> 32));
        }

        /// <summary>Returns a frame that consists of a header and the codec's data.</summary>
        public static byte[] Frame(string codec, long captureMilliseconds, byte[] data)
        {
            var frame = new byte[Size + data.Length];
            new FrameHeader { Codec = codec, Length = data.Length, CaptureMilliseconds = captureMilliseconds }.Write(frame);
            System.Buffer.BlockCopy(data, 0, frame, Size, data.Length);
            return frame;
        }

        /// <summary>
        /// Reads the header of a frame of the given length; returns false if the frame is too short for it, or for the
        /// announced data.
        /// </summary>
        public static bool TryRead(byte[] frame, int count, out FrameHeader header)
        {
            header = new FrameHeader();
            if (count < Size || count > frame.Length)
            {
                return false;
            }
            header.Codec = new string(new[] { (char)frame[3], (char)frame[2], (char)frame[1], (char)frame[0] });
            header.Length = (int)Datagram.ReadNumber(frame, 4);
            header.CaptureMilliseconds = Datagram.ReadNumber(frame, 8) | (long)Datagram.ReadNumber(frame, 12) << 32;
            return header.Length >= 0 && header.Length <= count - Size && header.CaptureMilliseconds >= 0;
        }
    }
}
