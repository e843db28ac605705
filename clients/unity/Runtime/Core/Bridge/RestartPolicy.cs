using System;

namespace Volsfu.Bridge
{
    /// <summary>
    /// The delay before a bridge is restarted: none for the first time, and longer after each short run, up to ten
    /// seconds. Times are milliseconds. It is for one thread at a time.
    /// </summary>
    public sealed class RestartPolicy
    {
        /// <summary>The shortest and the longest wait.</summary>
        public const long FirstWait = 100, LongestWait = 10000;
        /// <summary>A bridge that ran for this time was stable: the next delay is the first one again.</summary>
        public const long WellAfter = 30000;

        long wait = FirstWait, startedAt;

        /// <summary>Records the start of the bridge.</summary>
        public void Started(long now)
        {
            startedAt = now;
        }

        /// <summary>Records that the bridge has ended, or could not be started. Returns the delay before the restart.</summary>
        public long Ended(long now)
        {
            if (now - startedAt >= WellAfter)
            {
                wait = FirstWait;
            }
            long due = wait;
            wait = Math.Min(wait * 2, LongestWait);
            return due;
        }
    }
}
