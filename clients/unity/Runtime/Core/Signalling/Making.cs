using System;

namespace Volsfu.Signalling
{
    /// <summary>
    /// An attempt to join another server beside the present one, as the message moved with make_before_break requests. All
    /// times are in microseconds.
    /// </summary>
    sealed class Making
    {
        /// <summary>The most time for the attempt, whatever time the message leaves.</summary>
        const long longest = 10000000;

        int moves;

        internal Making(string server, string ticket, long deadline, long now)
        {
            Server = server;
            Ticket = ticket;
            Deadline = deadline;
            Until = Math.Min(deadline, now + longest);
            Visit(server, ticket);
        }

        /// <summary>The server and the ticket of the message.</summary>
        internal string Server { get; }
        internal string Ticket { get; }

        /// <summary>The time at which the present server ends the session, and the time limit of the attempt.</summary>
        internal long Deadline { get; }
        internal long Until { get; }

        /// <summary>The websocket of the attempt; null if it must be opened.</summary>
        internal SignallingLink Link { get; private set; }

        /// <summary>The server and the ticket of the next join, and its id.</summary>
        internal string Target { get; private set; }
        internal string Entry { get; private set; }
        internal string JoinId { get; set; }

        /// <summary>Opens the websocket.</summary>
        internal SignallingLink Open(long now)
        {
            Link = new SignallingLink(Target, Math.Max(0, Until - now) / 1000);
            return Link;
        }

        /// <summary>Follows a reply to another server; returns false after too many of them.</summary>
        internal bool Follow(string server, string ticket)
        {
            Visit(server, ticket);
            return ++moves <= Limits.Servers;
        }

        void Visit(string server, string ticket)
        {
            Link = null;
            JoinId = "";
            Target = server;
            Entry = ticket;
        }
    }
}
