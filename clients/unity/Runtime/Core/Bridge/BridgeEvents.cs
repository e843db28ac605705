using System;

namespace Volsfu.Bridge
{
    /// <summary>The local socket or the bridge's executable cannot be used. The message says which and why.</summary>
    public sealed class BridgeException : Exception
    {
        /// <summary>Says what cannot be used, and what the system said.</summary>
        public BridgeException(string message, Exception cause) : base(message, cause) { }
    }

    /// <summary>What happens to a bridge.</summary>
    public enum BridgeEventKind
    {
        /// <summary>The executable runs. Text is its process id.</summary>
        Started,
        /// <summary>The bridge has been heard: frames may flow.</summary>
        Ready,
        /// <summary>The executable has ended and is started again. Text says how it ended.</summary>
        Ended,
        /// <summary>The executable could not be started; it is tried again. Text says why.</summary>
        NotStarted,
        /// <summary>A line of the bridge's log.</summary>
        Log
    }

    /// <summary>Something that happened to the bridge.</summary>
    public struct BridgeEvent
    {
        public BridgeEventKind Kind;
        public string Text;
    }

    /// <summary>What went through a BridgeClient.</summary>
    public struct BridgeCounts
    {
        /// <summary>Datagrams that were sent to the bridge, and that came from it.</summary>
        public long DatagramsSent, DatagramsReceived;
        /// <summary>Datagrams that the system did not take.</summary>
        public long SendErrors;
        /// <summary>Datagrams of others than the bridge.</summary>
        public long Foreign;
        /// <summary>Datagrams that cannot be read.</summary>
        public long Malformed;
        /// <summary>Frames that were not sent, since newer ones came or no bridge was there.</summary>
        public long FramesNotSent;
        /// <summary>Received frames that were dropped because the program did not take them in time.</summary>
        public long FramesNotTaken;
        /// <summary>How often the executable was started.</summary>
        public long Starts;
        /// <summary>What became of what came.</summary>
        public AssemblyCounts Assembly;
    }
}
