using System.Buffers;

namespace Volsfu.Bridge
{
    /// <summary>
    /// A complete frame from the bridge. Release gives its memory back when the program has decoded it; one that is not released is left to the collector.
    /// </summary>
    public sealed class ReceivedFrame
    {
        /// <summary>Whether it is sound.</summary>
        public bool Audio { get; internal set; }
        /// <summary>The publisher's number.</summary>
        public uint Client { get; internal set; }
        public int Tile { get; internal set; }
        public int Quality { get; internal set; }
        /// <summary>The frame's number on its stream; gaps are frames that did not come.</summary>
        public uint Number { get; internal set; }
        /// <summary>The frame, FrameHeader included, is the first Length bytes.</summary>
        public byte[] Data { get; internal set; }
        public int Length { get; internal set; }

        /// <summary>Says that Data is not needed any more. To be called once at most.</summary>
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
