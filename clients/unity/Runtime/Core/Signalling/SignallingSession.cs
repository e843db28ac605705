using System;
using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>
    /// The client's side of signalling v1 without sockets, threads and clocks: its methods receive events with their
    /// times and return the actions. Times are microseconds of UTC since 1970, from a clock that never decreases. It is
    /// for one thread at a time: SignallingClient holds a lock around it.
    /// </summary>
    public sealed partial class SignallingSession
    {
        enum Phase { Apart, Connecting, Joining, Joined, Over }

        const long millisecond = 1000;
        const long firstRetry = 250 * millisecond;
        const long longestRetry = 10000 * millisecond;
        /// <summary>The interval of clock requests, which also test the connection.</summary>
        const long timeInterval = 5000 * millisecond;
        /// <summary>
        /// A server without an answer for this time counts as lost. If there are other servers, Silence leaves it before.
        /// </summary>
        const long longestSilence = 15000 * millisecond;
        /// <summary>Viewpoints and poses are sent at most 60 times per second.</summary>
        const long noticeInterval = 17 * millisecond;
        const string broken = "the websocket broke before the reply";
        /// <summary>The maximum number of events that wait for the program, and of requests without a websocket.</summary>
        const int maxWaiting = 4096;

        readonly JoinSettings settings;
        readonly Room room = new Room();
        readonly ChoiceBook choices = new ChoiceBook();
        readonly ServerClock clock = new ServerClock();
        readonly Silence silence = new Silence();
        /// <summary>
        /// The requests made while the websocket was broken, by their ids in the order of the calls. They are sent
        /// after every resumption until the server has replied.
        /// </summary>
        readonly List<KeyValuePair<string, string>> deferred = new List<KeyValuePair<string, string>>();
        readonly Queue<SignallingEvent> events = new Queue<SignallingEvent>();
        /// <summary>The requests without a reply, with the websockets over which they were sent.</summary>
        readonly Dictionary<string, SignallingLink> pending = new Dictionary<string, SignallingLink>();
        /// <summary>The last poses of own objects, and the publications whose poses wait to be sent.</summary>
        readonly Dictionary<string, ObjectPose> poses = new Dictionary<string, ObjectPose>();
        readonly HashSet<string> posed = new HashSet<string>();
        Phase phase = Phase.Apart;
        /// <summary>The websocket of the session; null if it must be opened.</summary>
        SignallingLink present;
        /// <summary>The last viewpoint, and whether it waits to be sent.</summary>
        Viewpoint viewpoint;
        bool looked;
        long maxBitrate, minBitrate, retryAt, retry = firstRetry, noticedAt, askedAt, attemptedAt;
        string session = "", secret = "", joinId = "", leaveId = "";
        /// <summary>
        /// unsure is true if the websocket broke before the replies to requests: the server may not have read them.
        /// </summary>
        bool limited, resuming, unsure;
        /// <summary>The time when media has arrived last, as the program has told.</summary>
        long mediaAt = -Silence.ExpectMedia;
        /// <summary>
        /// The numbers of requests, of the rounds of attempts that have failed since Joined, and of the present peer
        /// connection.
        /// </summary>
        int requests, rounds, connection;

        /// <summary>
        /// Creates a session that is not yet connected. Throws ProtocolException for settings that the protocol does
        /// not allow.
        /// </summary>
        public SignallingSession(JoinSettings settings)
        {
            settings.Check();
            this.settings = settings;
            servers = new Servers(settings.Server);
            maxBitrate = settings.MaxBitrate;
        }

        /// <summary>Whether the server has accepted the client.</summary>
        public bool IsJoined { get { return phase == Phase.Joined; } }

        /// <summary>Whether there are no further attempts.</summary>
        public bool IsOver { get { return phase == Phase.Over; } }

        /// <summary>The websocket of the session; null without one.</summary>
        internal SignallingLink Present { get { return present; } }

        /// <summary>The number of events lost because the program did not take them in time.</summary>
        public long EventsLost { get; private set; }

        /// <summary>The time for opening a websocket, and for the reply to the join if there are several servers.</summary>
        public long AttemptMilliseconds { get { return servers.AttemptTime(clock.RoundTrip / millisecond, rounds); } }

        /// <summary>
        /// Returns the websocket that must be opened now, or null. The caller opens it and calls Opened or Broke.
        /// </summary>
        public SignallingLink TakeLink(long now)
        {
            if (making != null)
            {
                return making.Link == null ? making.Open(now) : null;
            }
            if (phase != Phase.Apart || now < retryAt)
            {
                return null;
            }
            phase = Phase.Connecting;
            attemptedAt = now;
            present = new SignallingLink(Server, AttemptMilliseconds) { Connection = connection };
            return present;
        }

        /// <summary>Whether the session uses a websocket. Others are closed.</summary>
        public bool Uses(SignallingLink link)
        {
            return IsPresent(link) || IsMaking(link) || IsFormer(link);
        }

        bool IsPresent(SignallingLink link) { return link != null && present == link; }

        /// <summary>Records that a websocket is open.</summary>
        public void Opened(SignallingLink link, long now)
        {
            if (IsMaking(link))
            {
                JoinBeside();
            }
            else if (IsPresent(link) && phase == Phase.Connecting)
            {
                phase = Phase.Joining;
                link.HeardAt = now;
                askedAt = now;
                SendJoin();
            }
        }

        /// <summary>
        /// Records that a websocket has ended, or could not be opened. The code is that of its close frame or of the
        /// rejection; empty for a network error.
        /// </summary>
        public void Broke(SignallingLink link, string code, string reason, long now)
        {
            if (IsMaking(link))
            {
                GiveUpMaking(now);
            }
            else if (IsFormer(link))
            {
                Forget(link, broken);
            }
            else if (IsPresent(link))
            {
                BrokePresent(code, reason, now);
            }
        }

        void BrokePresent(string code, string reason, long now)
        {
            Forget(present, broken);
            if (making != null && !present.IsSilent)
            {
                Sever();
                return;
            }
            making = null;
            if (leaveId != "")
            {
                End("", reason);
                return;
            }
            bool resumes = session != "" && phase != Phase.Joined;
            bool final = IsFinal(code);
            if (resumes ? IsLost(final ? code : "", 0) : final)
            {
                End(code, reason);
                return;
            }
            connectionLost = connectionLost || code == "connection";
            Retry(reason, now);
        }

        /// <summary>
        /// Performs the timed actions of a websocket. It must be called every few milliseconds; false means that the
        /// websocket must be closed, because the server is silent or no longer used.
        /// </summary>
        public bool Step(SignallingLink link, long now)
        {
            StepMove(now);
            if (IsPresent(link) && phase >= Phase.Joining && !StepPresent(now))
            {
                link.IsSilent = true;
                return false;
            }
            return Uses(link);
        }

        bool StepPresent(long now)
        {
            bool late = phase == Phase.Joining && servers.Several && now - attemptedAt > AttemptMilliseconds * millisecond;
            if (late || now - present.HeardAt > longestSilence)
            {
                return false;
            }
            if (phase != Phase.Joined || present.IsBusy)
            {
                return true;
            }
            // During a move media comes from either server.
            bool expected = former == null && now - mediaAt < Silence.ExpectMedia;
            Silence.Verdict verdict = silence.Step(now, Math.Max(present.HeardAt, mediaAt), expected, servers.Several);
            if (verdict == Silence.Verdict.Leave)
            {
                return false;
            }
            if (verdict == Silence.Verdict.Ask || now - askedAt >= (clock.Known ? timeInterval : timeInterval / 10))
            {
                askedAt = now;
                Send(Requests.Time("t" + ++requests, now));
            }
            if (now - noticedAt >= noticeInterval && (looked || posed.Count > 0))
            {
                noticedAt = now;
                SendNotices(now);
            }
            return true;
        }

        /// <summary>
        /// Records that media has arrived over the program's own peer connection. While media is expected, Step notices
        /// the failure of a server sooner.
        /// </summary>
        public void MediaArrived(long now)
        {
            mediaAt = now;
        }

        /// <summary>Returns the next event for the program, or null.</summary>
        public SignallingEvent NextEvent()
        {
            return events.Count > 0 ? events.Dequeue() : null;
        }

        /// <summary>Returns a copy of the participants of the room and their publications.</summary>
        public List<Participant> Participants()
        {
            return room.Copy();
        }

        /// <summary>
        /// Converts a time of this host to the server's clock, both in microseconds of UTC; returns the host's own
        /// while the server's is unknown.
        /// </summary>
        public long ServerTime(long local)
        {
            return clock.At(local);
        }

        // Another attempt would have the same result: the cause is the token, the program or the place in the room, or
        // a decision of an operator.
        static bool IsFinal(string code)
        {
            switch (code)
            {
                case "unauthorized":
                case "version":
                case "malformed":
                case "too_large":
                case "forbidden":
                case "invalid":
                case "exists":
                case "unknown_type":
                case "replaced":
                case "kicked":
                case "closed":
                case "revoked":
                    return true;
                default:
                    return false;
            }
        }

        void SendJoin()
        {
            joinId = NewRequest();
            resuming = session != "";
            renewing = NeedsConnection();
            string own = resuming && ticket != "" ? ticket : secret;
            Send(Requests.Join(joinId, settings, settings.StartBitrate, session, own, resuming ? "" : ticket, renewing));
        }

        /// <summary>Reports the requests that were sent over a websocket and have no reply, with the reason.</summary>
        void Forget(SignallingLink link, string reason)
        {
            var forgotten = new List<string>();
            foreach (KeyValuePair<string, SignallingLink> request in pending)
            {
                if (request.Value == link)
                {
                    forgotten.Add(request.Key);
                }
            }
            foreach (string id in forgotten)
            {
                pending.Remove(id);
                Tell(new RequestFailed { Id = id, Code = "interrupted", Message = reason });
                unsure = true;
            }
        }

        void SendNotices(long now)
        {
            if (looked)
            {
                Send(Requests.SetViewpoint(viewpoint, clock.Known ? clock.At(now) : 0));
                looked = false;
            }
            foreach (string publication in posed)
            {
                Send(Requests.SetPose(publication, poses[publication]));
            }
            posed.Clear();
        }

        void End(string code, string message)
        {
            phase = Phase.Over;
            present = null;
            making = null;
            former = null;
            Tell(new Ended { Code = code, Message = message });
        }

        string NewRequest()
        {
            string id = "r" + ++requests;
            pending.Add(id, present);
            return id;
        }

        void Send(string message)
        {
            present.Send(message);
        }

        void Tell(SignallingEvent e)
        {
            if (events.Count >= maxWaiting)
            {
                events.Dequeue();
                EventsLost++;
            }
            events.Enqueue(e);
        }
    }
}
