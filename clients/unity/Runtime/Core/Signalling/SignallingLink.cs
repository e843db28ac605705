using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>
    /// A websocket of a session, with the messages that wait for it. A session has one, and a second one while it moves to
    /// another server.
    /// </summary>
    public sealed class SignallingLink
    {
        /// <summary>The maximum number of messages that wait for the websocket.</summary>
        internal const int MaxWaiting = 4096;

        readonly Queue<string> outgoing = new Queue<string>();

        internal SignallingLink(string server, long attemptMilliseconds)
        {
            Server = server;
            AttemptMilliseconds = attemptMilliseconds;
        }

        /// <summary>The address of the server, as ws://host:port or wss://host:port.</summary>
        public string Server { get; }

        /// <summary>The time for opening the websocket.</summary>
        public long AttemptMilliseconds { get; }

        /// <summary>Whether the websocket is to be closed without waiting for the server, because the server is silent.</summary>
        public bool IsSilent { get; internal set; }

        /// <summary>Whether messages wait for the websocket.</summary>
        public bool HasOutgoing { get { return outgoing.Count > 0; } }

        /// <summary>The number of the peer connection that the messages are about.</summary>
        internal int Connection { get; set; }

        /// <summary>The slots of that connection, for which the server sends assignments after each join.</summary>
        internal Slots Slots { get; } = new Slots();

        /// <summary>The time of the last message from the server.</summary>
        internal long HeardAt { get; set; }

        /// <summary>Whether so many messages wait that those which can wait are not added.</summary>
        internal bool IsBusy { get { return outgoing.Count >= MaxWaiting / 2; } }

        internal void Send(string message)
        {
            if (outgoing.Count >= MaxWaiting)
            {
                throw new ProtocolException("more than " + MaxWaiting + " messages wait for the websocket");
            }
            outgoing.Enqueue(message);
        }

        /// <summary>Returns the next message for the websocket, or null.</summary>
        public string NextOutgoing()
        {
            return outgoing.Count > 0 ? outgoing.Dequeue() : null;
        }
    }
}
