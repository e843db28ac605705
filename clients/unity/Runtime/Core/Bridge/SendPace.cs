using System;

namespace Volsfu.Bridge
{
    /// <summary>
    /// Keeps the bridge's socket from overflowing: by default a system holds about 92 datagrams for a program that does not read meanwhile. It is a bucket of
    /// datagrams that fills up again with time, in microseconds. It is for one thread.
    /// </summary>
    public sealed class SendPace
    {
        /// <summary>The datagrams that go out at once, and in each millisecond beyond: 600 Mbit/s.</summary>
        public const int Burst = 64;

        double left = Burst;
        long filledAt;

        /// <summary>How many datagrams may be sent now.</summary>
        public int Available(long now)
        {
            left = Math.Min(Burst, left + Math.Max(0, now - filledAt) * (Burst / 1000.0));
            filledAt = now;
            return (int)left;
        }

        /// <summary>So many have been sent.</summary>
        public void Spend(int datagrams)
        {
            left -= datagrams;
        }
    }
}
