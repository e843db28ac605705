namespace Volsfu.Signalling
{
    /// <summary>
    /// The offset of the server's clock from this host's, from the exchange with the shortest round trip
    /// (docs/signalling.md, "Time").
    /// </summary>
    public sealed class ServerClock
    {
        /// <summary>
        /// The growth of an exchange's error with age, because clocks drift: per microsecond, in microseconds (500
        /// ppm).
        /// </summary>
        const double drift = 0.0005;

        long ahead, trip, learnedAt;

        /// <summary>Whether the server has answered.</summary>
        public bool Known { get; private set; }

        /// <summary>The smoothed round-trip time (RFC 6298) in microseconds, 0 while unknown.</summary>
        public long RoundTrip { get; private set; }

        /// <summary>
        /// Adds one exchange: sent at t0, read and answered by the server at t1 and t2, received now; all in
        /// microseconds of UTC.
        /// </summary>
        public void Learn(long t0, long t1, long t2, long now)
        {
            long taken = now - t0 - (t2 - t1);
            if (taken < 0)
            {
                return;
            }
            RoundTrip = RoundTrip == 0 ? taken : RoundTrip + (taken - RoundTrip) / 8;
            if (Known && taken > trip + (now - learnedAt) * drift)
            {
                return;
            }
            Known = true;
            trip = taken;
            learnedAt = now;
            ahead = (t1 - t0 + (t2 - now)) / 2;
        }

        /// <summary>Converts a time of this host to the server's clock.</summary>
        public long At(long local)
        {
            return local + ahead;
        }
    }
}
