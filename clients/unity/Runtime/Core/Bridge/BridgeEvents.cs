using System;

namespace Volsfu.Bridge
{
    /// <summary>
    /// The local socket or the bridge's executable cannot be used. The message contains the affected object and the
    /// cause.
    /// </summary>
    public sealed class BridgeException : Exception
    {
        /// <summary>Creates the exception with the affected object and the system's message.</summary>
        public BridgeException(string message, Exception cause) : base(message, cause) { }
    }

    /// <summary>The kinds of bridge events.</summary>
    public enum BridgeEventKind
    {
        /// <summary>The executable runs. Text is its process id.</summary>
        Started,
        /// <summary>A datagram of the bridge has arrived: frames can be exchanged.</summary>
        Ready,
        /// <summary>The executable has ended and will be restarted. Text is the way it ended.</summary>
        Ended,
        /// <summary>The executable could not be started; a new attempt follows. Text is the cause.</summary>
        NotStarted,
        /// <summary>A line of the bridge's log.</summary>
        Log
    }

    /// <summary>An event of the bridge.</summary>
    public struct BridgeEvent
    {
        public BridgeEventKind Kind;
        public string Text;
    }

    /// <summary>The counts of a BridgeClient.</summary>
    public struct BridgeCounts
    {
        /// <summary>Datagrams sent to the bridge, and received from it.</summary>
        public long DatagramsSent, DatagramsReceived;
        /// <summary>Datagrams rejected by the system.</summary>
        public long SendErrors;
        /// <summary>Datagrams from other senders than the bridge.</summary>
        public long Foreign;
        /// <summary>Unreadable datagrams.</summary>
        public long Malformed;
        /// <summary>Frames that were not sent, because of newer ones or without a bridge.</summary>
        public long FramesNotSent;
        /// <summary>Received frames that were dropped because the program did not take them in time.</summary>
        public long FramesNotTaken;
        /// <summary>The number of starts of the executable.</summary>
        public long Starts;
        /// <summary>The results of received pieces.</summary>
        public AssemblyCounts Assembly;
    }
}
