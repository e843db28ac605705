using System.Collections.Generic;

namespace Volsfu.Bridge
{
    /// <summary>
    /// Received frames and events that were not yet taken, the oldest first. Beyond the limits, the oldest are dropped.
    /// It is for one thread at a time.
    /// </summary>
    public sealed class Inbox
    {
        /// <summary>
        /// The maximum numbers of waiting events and frames, and of bytes of the frames. A single frame may wait
        /// regardless of its size.
        /// </summary>
        public const int MaxEvents = 1024, MaxFrames = 1024, MaxBytes = 64 << 20;

        readonly Queue<ReceivedFrame> frames = new Queue<ReceivedFrame>();
        readonly Queue<BridgeEvent> events = new Queue<BridgeEvent>();
        long bytes;

        /// <summary>The number of dropped frames.</summary>
        public long Dropped { get; private set; }

        /// <summary>Adds a received frame.</summary>
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

        /// <summary>Adds an event.</summary>
        public void Put(BridgeEvent happened)
        {
            if (events.Count >= MaxEvents)
            {
                events.Dequeue();
            }
            events.Enqueue(happened);
        }

        /// <summary>Returns the oldest frame, or null.</summary>
        public bool TryTake(out ReceivedFrame frame)
        {
            frame = frames.Count > 0 ? frames.Dequeue() : null;
            bytes -= frame == null ? 0 : frame.Length;
            return frame != null;
        }

        /// <summary>Returns the oldest event; without a text if there is none.</summary>
        public bool TryTake(out BridgeEvent happened)
        {
            happened = events.Count > 0 ? events.Dequeue() : new BridgeEvent();
            return happened.Text != null;
        }
    }
}
