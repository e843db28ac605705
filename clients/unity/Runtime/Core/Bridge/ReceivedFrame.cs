using System.Buffers;

namespace Volsfu.Bridge
{
    /// <summary>
    /// A complete frame from the bridge. Release returns its memory after decoding; without it, the garbage collector
    /// frees the memory.
    /// </summary>
    public sealed class ReceivedFrame
    {
        /// <summary>Whether the frame is sound.</summary>
        public bool Audio { get; internal set; }
        /// <summary>The publisher's number.</summary>
        public uint Client { get; internal set; }
        public int Tile { get; internal set; }
        public int Quality { get; internal set; }
        /// <summary>The frame's number on its stream; gaps are frames that were not received.</summary>
        public uint Number { get; internal set; }
        /// <summary>The frame, including FrameHeader, is the first Length bytes.</summary>
        public byte[] Data { get; internal set; }
        public int Length { get; internal set; }

        /// <summary>Releases Data. It may be called once.</summary>
        public void Release()
        {
            byte[] data = Data;
            Data = null;
            if (data != null && data.Length > 0)
            {
                ArrayPool<byte>.Shared.Return(data);
            }
        }
    }
}
