namespace Volsfu.Bridge
{
    /// <summary>
    /// The handshake of a program and its bridge. A bridge that is ready sends a ready datagram, and repeats it until
    /// it is answered; the sender of the answer is the program. VR2Gather's own peer sends it once, so the program also
    /// sends one on its own while it has received nothing. Times are milliseconds. It is for one thread at a time.
    /// </summary>
    public sealed class Handshake
    {
        /// <summary>The interval of ready datagrams before the first one from the bridge.</summary>
        public const long CallInterval = 200;

        long calledAt;
        bool called, answer;

        /// <summary>Whether a datagram of the bridge has arrived since it was started.</summary>
        public bool IsReady { get; private set; }

        /// <summary>
        /// Records a datagram from the bridge. Each ready datagram must be answered: a repeated one means that the
        /// answer was lost.
        /// </summary>
        public void Heard(DatagramType type)
        {
            IsReady = true;
            answer = answer || type == DatagramType.Ready;
        }

        /// <summary>Whether a ready datagram must be sent now.</summary>
        public bool TakeReady(long now)
        {
            if (!answer && (IsReady || (called && now - calledAt < CallInterval)))
            {
                return false;
            }
            answer = false;
            called = true;
            calledAt = now;
            return true;
        }

        /// <summary>Records the end of the bridge; the next one starts from the beginning.</summary>
        public void Reset()
        {
            IsReady = false;
            answer = false;
            called = false;
        }
    }
}
