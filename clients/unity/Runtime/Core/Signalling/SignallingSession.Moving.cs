using System;
using Newtonsoft.Json.Linq;

namespace Volsfu.Signalling
{
    public sealed partial class SignallingSession
    {
        /// <summary>The time for a move in milliseconds if the server names none.</summary>
        const long moveTime = 10000;
        const string movedBefore = "the session moved to another server before the reply";

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
        /// <summary>The attempt to join another server beside the present one; null without one.</summary>
        Making making;
        /// <summary>The websocket of the session that has broken during the attempt, whose result decides.</summary>
        SignallingLink severed;
        /// <summary>The websocket to the server that the session has moved from, until the program leaves the server.</summary>
        SignallingLink former;
        /// <summary>The time at which the former server ends the session.</summary>
        long formerUntil;
        /// <summary>The last estimate of the link to this client in bit/s, 0 for none.</summary>
        long estimate;

        /// <summary>The address of the server to which the next websocket is opened.</summary>
        public string Server { get { return servers.Target; } }

        /// <summary>
        /// Processes a server's message that sends the client to another server: in reply to a join, or during the session.
        /// </summary>
        void Move(JToken json, long now)
        {
            string id = json.OptionalText("id", Limits.Name);
            string server = json.Text("url", Limits.Url), newTicket = json.Text("ticket", Limits.Format);
            bool beside = json.Flag("make_before_break");
            long deadline = now + json.OptionalInteger("deadline_ms", 0, int.MaxValue, moveTime) * millisecond;
            if (leaveId != "" || (phase == Phase.Joining && id != joinId))
            {
                return;
            }
            if (!servers.Allows(server))
            {
                throw new ProtocolException("moved: the client does not continue on " + server);
            }
            if (beside && phase == Phase.Joined && !connectionLost && !settings.NewConnectionOnResume)
            {
                making = new Making(server, newTicket, deadline, now);
                return;
            }
            Follow(server, newTicket, now);
        }

        /// <summary>
        /// Leaves the present server for another one: in reply to a join with the ticket, or else by resuming the session
        /// with the ticket instead of the secret and with a new peer connection.
        /// </summary>
        void Follow(string server, string newTicket, long now)
        {
            if (++moves > Limits.Servers)
            {
                BrokePresent("", "the servers moved the client more than " + Limits.Servers + " times", now);
                return;
            }
            pending.Remove(joinId);
            Forget(present, movedBefore);
            if (phase != Phase.Joining)
            {
                renewing = true;
                // The server of the session is asked next if the other one cannot be reached.
                servers.Begin(false);
                refusals = new Refusals(true);
            }
            servers.Visit(server);
            ticket = newTicket;
            present = null;
            severed = null;
            phase = Phase.Apart;
            retryAt = now;
            Tell(new Moved { Server = server });
        }

        bool IsMaking(SignallingLink link) { return link != null && making != null && making.Link == link; }

        bool IsFormer(SignallingLink link) { return link != null && former == link; }

        /// <summary>Resumes the session on the other server, which begins with the present estimate of the link.</summary>
        void JoinBeside()
        {
            making.JoinId = "r" + ++requests;
            long start = Requests.StartRate(estimate == 0 ? settings.StartBitrate : estimate, settings.MaxBitrate, 0);
            making.Link.Send(Requests.Join(making.JoinId, settings, start, session, making.Entry, "", true));
        }

        /// <summary>Handles a message of the other server before the session is there.</summary>
        void HandleMaking(string type, JToken json, long now)
        {
            switch (type)
            {
                case "joined":
                    Made(ServerMessages.Entry(json), now);
                    break;
                case "moved":
                    string server = json.Text("url", Limits.Url), next = json.Text("ticket", Limits.Format);
                    if (!servers.Allows(server) || !making.Follow(server, next))
                    {
                        GiveUpMaking(now);
                    }
                    break;
                case "error":
                    if (json.OptionalText("id", Limits.Name) == making.JoinId)
                    {
                        GiveUpMaking(now);
                    }
                    break;
            }
        }

        /// <summary>
        /// Continues the session on the server that was joined beside the present one. A program that keeps two peer
        /// connections stays on both.
        /// </summary>
        void Made(Entry entry, long now)
        {
            EndFormer();
            SignallingLink before = present ?? severed;
            if (settings.MakeBeforeBreak && (settings.Receive || settings.Publications.Count > 0))
            {
                former = before;
                formerUntil = making.Deadline;
            }
            else
            {
                Forget(before, movedBefore);
            }
            present = making.Link;
            making = null;
            severed = null;
            servers.Visit(present.Server);
            renewing = true;
            askedAt = now;
            Tell(new Moved { Server = present.Server });
            Enter(entry, true);
        }

        /// <summary>Goes to the other server in the way without two connections.</summary>
        void GiveUpMaking(long now)
        {
            Making failed = making;
            making = null;
            Follow(failed.Server, failed.Ticket, now);
        }

        /// <summary>Waits for the result of the attempt: the other server may have the session, and its reply be on the way.</summary>
        void Sever()
        {
            severed = present;
            present = null;
            phase = Phase.Apart;
        }

        /// <summary>Ends an attempt and a former connection that take too long.</summary>
        void StepMove(long now)
        {
            if (making != null && now >= making.Until)
            {
                GiveUpMaking(now);
            }
            if (former != null && now >= formerUntil)
            {
                EndFormer();
            }
        }

        /// <summary>
        /// Leaves the server that the session has moved from, when media comes from the present server and leaves to it.
        /// FormerEnded follows.
        /// </summary>
        public void LeaveFormer()
        {
            EndFormer();
        }

        void EndFormer()
        {
            SignallingLink ended = former;
            if (ended == null)
            {
                return;
            }
            former = null;
            Forget(ended, movedBefore);
            Tell(new FormerEnded { Connection = ended.Connection });
        }

        /// <summary>Handles a message of the server that the session has moved from. Only its connection and replies count.</summary>
        void HandleFormer(string type, JToken json)
        {
            switch (type)
            {
                case "ok":
                    Done(json.OptionalText("id", Limits.Name));
                    break;
                case "error":
                    RequestFailed error = ServerMessages.Error(json);
                    if (pending.Remove(error.Id))
                    {
                        Answered(error.Id);
                        Tell(error);
                    }
                    break;
                default:
                    HandleConnection(former, type, json);
                    break;
            }
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
            bool lost = phase == Phase.Joined, silent = present.IsSilent;
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
            present = null;
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
