using System;
using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>
    /// The servers on which a session may continue. The rules are those of the other clients: pkg/client/internal/failover
    /// and clients/web/src/signal/servers.ts.
    /// </summary>
    sealed class Servers
    {
        /// <summary>The minimum and the maximum time for an attempt if there are several servers, in milliseconds.</summary>
        const long leastAttempt = 1200, longestAttempt = 10000;

        /// <summary>Whether the program has named a server with TLS. The session then stays on such servers.</summary>
        readonly bool secure;
        /// <summary>The server of the session, at first that of the settings.</summary>
        string present;
        /// <summary>The servers of the last list, in the order of preference.</summary>
        readonly List<string> others = new List<string>();
        /// <summary>The servers that the present round of attempts has still to try.</summary>
        readonly Queue<string> round = new Queue<string>();

        /// <summary>Throws ProtocolException if the address is not one of a server.</summary>
        internal Servers(string address)
        {
            secure = Address.Check(address).Scheme == "wss";
            present = address;
            Target = address;
        }

        /// <summary>The server of the next attempt, or of the last one.</summary>
        internal string Target { get; private set; }

        /// <summary>Whether Target is the server of the session, which may have its peer connection.</summary>
        internal bool AtPresent { get { return Target == present; } }

        /// <summary>Whether there is a server besides that of the session.</summary>
        internal bool Several { get { return others.Exists(server => server != present); } }

        /// <summary>Whether the present round has no further server.</summary>
        internal bool Last { get { return round.Count == 0; } }

        /// <summary>
        /// Whether the client connects to an address that a server has named. The token is not sent without TLS if it
        /// was sent with TLS before.
        /// </summary>
        internal bool Allows(string address)
        {
            Uri parsed;
            return Address.TryParse(address, out parsed) && (parsed.Scheme == "wss" || !secure);
        }

        /// <summary>Records that Target has the session. The addresses are those of the other servers.</summary>
        internal void Arrive(IEnumerable<string> addresses)
        {
            present = Target;
            round.Clear();
            Replace(addresses);
        }

        /// <summary>Replaces the other servers. Addresses that cannot be used are skipped.</summary>
        internal void Replace(IEnumerable<string> addresses)
        {
            others.Clear();
            foreach (string address in addresses)
            {
                if (others.Count < Limits.Servers && Allows(address) && !others.Contains(address))
                {
                    others.Add(address);
                }
            }
        }

        /// <summary>Makes the next attempt on a server that Allows permits.</summary>
        internal void Visit(string address)
        {
            Target = address;
        }

        /// <summary>
        /// Begins a round of attempts with the server of the session. If that server is silent, it is the last of the
        /// round.
        /// </summary>
        internal void Begin(bool silent)
        {
            round.Clear();
            if (!silent)
            {
                round.Enqueue(present);
            }
            foreach (string server in others)
            {
                if (server != present)
                {
                    round.Enqueue(server);
                }
            }
            if (silent)
            {
                round.Enqueue(present);
            }
        }

        /// <summary>
        /// Chooses the server of the next attempt. Returns false if the attempt begins a new round and needs a delay.
        /// The first round after the loss of a session needs none if there are several servers.
        /// </summary>
        internal bool Next(bool lost, bool silent)
        {
            bool goesOn = round.Count > 0 || (lost && Several);
            if (round.Count == 0)
            {
                Begin(lost && silent);
            }
            Target = round.Dequeue();
            return goesOn;
        }

        /// <summary>
        /// Returns the time for an attempt in milliseconds, from the round-trip time of the websocket. doublings is the
        /// number of rounds that have failed. TCP, TLS 1.3, the upgrade and the join take four round trips, TLS 1.2 one
        /// more, and TCP repeats a lost SYN after one second.
        /// </summary>
        internal long AttemptTime(long roundTrip, int doublings)
        {
            return Several ? Math.Min(longestAttempt, Math.Max(leastAttempt, 1000 + 5 * roundTrip) << Math.Min(doublings, 4)) : longestAttempt;
        }
    }
}
