using System;
using Newtonsoft.Json.Linq;

namespace Volsfu.Signalling
{
    public sealed partial class SignallingSession
    {
        readonly Servers servers;
        /// <summary>The ticket of the message that has sent the client to the server of the next join, else empty.</summary>
        string ticket = "";
        /// <summary>The number of servers to which the client was sent in succession.</summary>
        int moves;
        /// <summary>Whether the last join has asked for a new peer connection.</summary>
        bool renewing;
        /// <summary>The refusals of the present round of attempts to resume.</summary>
        Refusals refusals = new Refusals(false);
        /// <summary>Whether the session has left its server because the server was silent, and has not resumed since.</summary>
        bool leftSilent;
        /// <summary>Whether the server of the session no longer has the peer connection.</summary>
        bool connectionLost;

        /// <summary>The address of the server to which the next websocket is opened.</summary>
        public string Server { get { return servers.Target; } }

        /// <summary>
        /// Follows a server's message to another server: in reply to a join with the ticket of the message, or else by
        /// resuming the session with the ticket instead of the secret and with a new peer connection.
        /// </summary>
        void Move(JToken json, long now)
        {
            string id = json.OptionalText("id", Limits.Name);
            string server = json.Text("url", Limits.Url), newTicket = json.Text("ticket", Limits.Format);
            if (leaveId != "" || (phase == Phase.Joining && id != joinId))
            {
                return;
            }
            if (!servers.Allows(server))
            {
                throw new ProtocolException("moved: the client does not continue on " + server);
            }
            if (++moves > Limits.Servers)
            {
                Broke("", "the servers moved the client more than " + Limits.Servers + " times", now);
                return;
            }
            pending.Remove(joinId);
            Forget("the session moved to another server before the reply");
            if (phase == Phase.Joined)
            {
                renewing = true;
                // The server of the session is asked next if the other one cannot be reached.
                servers.Begin(false);
                refusals = new Refusals(true);
            }
            servers.Visit(server);
            ticket = newTicket;
            phase = Phase.Apart;
            retryAt = now;
            Tell(new Moved { Server = server });
        }

        /// <summary>Replaces the list of other servers, and the secret if there is a new one.</summary>
        void LearnNodes(JToken json)
        {
            string newSecret = json.OptionalText("secret", Limits.Format);
            servers.Replace(ServerMessages.Nodes(json));
            secret = newSecret == "" ? secret : newSecret;
        }

        /// <summary>Makes the next attempt, after a delay if the attempt begins a new round.</summary>
        void Retry(string reason, long now)
        {
            bool lost = phase == Phase.Joined;
            if (lost)
            {
                leftSilent = silent;
            }
            long least = !lost && servers.Last ? refusals.Wait * millisecond : 0;
            if (lost || servers.Last)
            {
                refusals = new Refusals(servers.Several);
            }
            bool goesOn = servers.Next(lost, silent);
            phase = Phase.Apart;
            ticket = "";
            moves = 0;
            long wait = goesOn ? 0 : Math.Max(retry, least);
            retryAt = now + wait;
            Tell(new Interrupted { Reason = reason, RetryMilliseconds = wait / millisecond });
            if (!goesOn)
            {
                retry = Math.Min(retry * 2, longestRetry);
                rounds++;
            }
        }

        /// <summary>
        /// Adds a failed attempt to resume, with the arguments of Refusals.Add. Returns true if no server continues the
        /// session. A server that drains may be back soon.
        /// </summary>
        bool IsLost(string code, long retryAfter)
        {
            bool refusedByAll = refusals.Add(code, retryAfter);
            return refusedByAll || (servers.Last && refusals.All && code != "draining");
        }

        /// <summary>
        /// Returns whether a join asks for a new peer connection. The connection is that of the server of the session,
        /// whichever servers were tried since. A server to which a join is moved gets the same request.
        /// </summary>
        bool NeedsConnection()
        {
            bool elsewhere = !servers.AtPresent && (ticket == "" || renewing);
            return elsewhere || connectionLost || settings.NewConnectionOnResume;
        }
    }
}
