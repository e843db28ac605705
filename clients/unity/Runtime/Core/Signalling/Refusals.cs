using System;

namespace Volsfu.Signalling
{
    /// <summary>
    /// Judges the replies to the attempts of one round to resume a session. The rules are those of the other clients
    /// (pkg/client/internal/failover and clients/web/src/signal/refusals.ts), and so are the transcripts
    /// (pkg/client/testdata/failover.json).
    /// </summary>
    sealed class Refusals
    {
        /// <summary>Bounds the wait that servers ask for, in milliseconds.</summary>
        const long longestWait = 10000;

        /// <summary>Whether the round has more than one server.</summary>
        readonly bool several;
        int attempts, refused;

        internal Refusals(bool several)
        {
            this.several = several;
        }

        /// <summary>The least time until the next round in milliseconds, as servers have asked.</summary>
        internal long Wait { get; private set; }

        /// <summary>Whether every server of the round has refused the session.</summary>
        internal bool All { get { return refused == attempts; } }

        /// <summary>
        /// Adds an attempt that failed, with the code of the refusal, or "" without a reply. retryAfter is the time in
        /// milliseconds after which the client may try again, 0 for none. Returns true if other servers would refuse,
        /// too: the code is about the client.
        /// </summary>
        internal bool Add(string code, long retryAfter)
        {
            attempts++;
            if (code == "")
            {
                return false;
            }
            if (retryAfter > 0)
            {
                Wait = Math.Max(Wait, Math.Min(retryAfter, longestWait));
                return false;
            }
            if (code == "kicked" || code == "revoked" || code == "closed" || code == "replaced")
            {
                return true;
            }
            if (code != "draining" || !several)
            {
                refused++;
            }
            return false;
        }
    }
}
