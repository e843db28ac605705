namespace Volsfu.Bridge
{
    /// <summary>
    /// How a program and its bridge find each other. The bridge sends a ready datagram when it listens, and repeats it until it is answered; whoever answers is
    /// the program. VR2Gather's own peer sends it once, so that the program also sends one by itself while it has heard nothing. Times are milliseconds. It is
    /// for one thread at a time.
    /// </summary>
    public sealed class Handshake
    {
        /// <summary>How often a bridge that has not been heard is called.</summary>
        public const long CallInterval = 200;

        long calledAt;
        bool called, answer;

        /// <summary>Whether the bridge has been heard since it was started.</summary>
        public bool IsReady { get; private set; }

        /// <summary>A datagram has come from the bridge. Each ready datagram is to be answered: one that is repeated says that the answer was lost.</summary>
        public void Heard(DatagramType type)
        {
            IsReady = true;
            answer = answer || type == DatagramType.Ready;
        }

        /// <summary>Whether a ready datagram is to be sent now.</summary>
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

        /// <summary>The bridge is gone; the next one begins anew.</summary>
        public void Reset()
        {
            IsReady = false;
            answer = false;
            called = false;
        }
    }
}
