using System.Collections.Generic;

namespace Volsfu.Bridge
{
    /// <summary>
    /// What has come for the program and was not taken yet: frames and events, the oldest first. Where the program does not take them, the oldest are dropped. It
    /// is for one thread at a time.
    /// </summary>
    public sealed class Inbox
    {
        /// <summary>How many events wait at most; how many frames, and how many bytes of theirs together. A single frame waits whatever its size.</summary>
        public const int MaxEvents = 1024, MaxFrames = 1024, MaxBytes = 64 << 20;

        readonly Queue<ReceivedFrame> frames = new Queue<ReceivedFrame>();
        readonly Queue<BridgeEvent> events = new Queue<BridgeEvent>();
        long bytes;

        /// <summary>How many frames were dropped.</summary>
        public long Dropped { get; private set; }

        /// <summary>A frame has come.</summary>
        public void Put(ReceivedFrame frame)
        {
            frames.Enqueue(frame);
            bytes += frame.Length;
            while (frames.Count > MaxFrames || (bytes > MaxBytes && frames.Count > 1))
            {
                ReceivedFrame oldest = frames.Dequeue();
                bytes -= oldest.Length;
                oldest.Release();
                Dropped++;
            }
        }

        /// <summary>Something has happened.</summary>
        public void Put(BridgeEvent happened)
        {
            if (events.Count >= MaxEvents)
            {
                events.Dequeue();
            }
            events.Enqueue(happened);
        }

        /// <summary>The oldest frame, null where there is none.</summary>
        public bool TryTake(out ReceivedFrame frame)
        {
            frame = frames.Count > 0 ? frames.Dequeue() : null;
            bytes -= frame == null ? 0 : frame.Length;
            return frame != null;
        }

        /// <summary>The oldest event; without a text where there is none.</summary>
        public bool TryTake(out BridgeEvent happened)
        {
            happened = events.Count > 0 ? events.Dequeue() : new BridgeEvent();
            return happened.Text != null;
        }
    }
}
