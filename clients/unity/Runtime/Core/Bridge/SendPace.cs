using System;

namespace Volsfu.Bridge
{
    /// <summary>
    /// Prevents an overflow of the bridge's socket: by default, a system buffers about 92 datagrams for a program. It
    /// is a bucket of datagrams that refills over time, in microseconds. It is for one thread.
    /// </summary>
    public sealed class SendPace
    {
        /// <summary>The number of datagrams sent at once, and of those in each further millisecond: 600 Mbit/s.</summary>
        public const int Burst = 64;

        double left = Burst;
        long filledAt;

        /// <summary>Returns the number of datagrams that may be sent now.</summary>
        public int Available(long now)
        {
            left = Math.Min(Burst, left + Math.Max(0, now - filledAt) * (Burst / 1000.0));
            filledAt = now;
            return (int)left;
        }

        /// <summary>Records sent datagrams.</summary>
        public void Spend(int datagrams)
        {
            left -= datagrams;
        }
    }
}
