using System;

namespace Volsfu.Bridge
{
    /// <summary>
    /// When a bridge that ended is started again: at once for the first time, and later each time that it does not last, up to ten seconds. Times are milliseconds.
    /// It is for one thread at a time.
    /// </summary>
    public sealed class RestartPolicy
    {
        /// <summary>The shortest and the longest wait.</summary>
        public const long FirstWait = 100, LongestWait = 10000;
        /// <summary>A bridge that lived so long was well: the next one is waited for no longer than the first.</summary>
        public const long WellAfter = 30000;

        long wait = FirstWait, startedAt;

        /// <summary>The bridge is started now.</summary>
        public void Started(long now)
        {
            startedAt = now;
        }

        /// <summary>The bridge has ended, or could not be started. Returns how long to wait before it is started again.</summary>
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
