using System;

namespace Volsfu.Signalling
{
    /// <summary>
    /// Detects a server that neither sends nor replies. The rules are those of the other clients
    /// (pkg/client/internal/failover and clients/web/src/signal/silence.ts), and so are the transcripts
    /// (pkg/client/testdata/failover.json). All times are in microseconds.
    /// </summary>
    sealed class Silence
    {
        /// <summary>The result of a step. Leave: the session continues on another server.</summary>
        internal enum Verdict { None, Ask, Leave }

        /// <summary>Media is expected for this time after the last packet.</summary>
        internal const long ExpectMedia = 10000000;

        /// <summary>
        /// The time without a message or media, while media is expected and while it is not, after which the server is
        /// asked for a reply.
        /// </summary>
        const long silentAfter = 600000, quietAfter = 2500000;
        /// <summary>The least times after which the session then continues on another server.</summary>
        const long replyWithin = 300000, quietReplyWithin = 1000000;
        /// <summary>Bounds the factor by which the time for a reply grows.</summary>
        const int maxPatience = 32;
        /// <summary>A step that comes so long after the one before is late: messages may wait to be read.</summary>
        const long lateStep = 1500000;

        /// <summary>The smoothed round-trip time of the websocket and its mean deviation (RFC 6298).</summary>
        long rtt, deviation;
        int patience = 1;
        /// <summary>The times of the question and of the last step, null for none.</summary>
        long? asked, stepped;
        /// <summary>Whether a late step has repeated the question.</summary>
        bool repeated;

        /// <summary>Adds a round-trip time of the websocket.</summary>
        internal void Measured(long sample)
        {
            if (sample < 0)
            {
                return;
            }
            if (rtt == 0)
            {
                rtt = sample;
                deviation = sample / 2;
                return;
            }
            deviation += (Math.Abs(rtt - sample) - deviation) / 4;
            rtt += (sample - rtt) / 8;
        }

        /// <summary>Records that the session has returned to the server that it had left: the server was alive.</summary>
        internal void Returned()
        {
            patience = Math.Min(2 * patience, maxPatience);
        }

        /// <summary>
        /// Returns the verdict at a time. received is the time when something has arrived last, expected is whether
        /// media is expected, several whether there is another server.
        /// </summary>
        internal Verdict Step(long now, long received, bool expected, bool several)
        {
            bool late = stepped.HasValue && now - stepped.Value > lateStep;
            stepped = now;
            if (!several || now - received < (expected ? silentAfter : quietAfter))
            {
                asked = null;
                repeated = false;
                return Verdict.None;
            }
            if (!asked.HasValue || (late && !repeated))
            {
                repeated = repeated || asked.HasValue;
                asked = now;
                return Verdict.Ask;
            }
            long least = expected ? replyWithin : quietReplyWithin;
            if (now - asked.Value < Math.Max(least, 2 * rtt + 4 * deviation) * patience)
            {
                return Verdict.None;
            }
            asked = null;
            repeated = false;
            return Verdict.Leave;
        }
    }
}
