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
        /// <summary>
        /// The maximum numbers of messages that wait for the websocket, and of events that wait for the program.
        /// </summary>
        const int maxWaiting = 4096;

        readonly JoinSettings settings;
        readonly Room room = new Room();
        readonly ChoiceBook choices = new ChoiceBook();
        readonly ServerClock clock = new ServerClock();
        readonly Silence silence = new Silence();
        readonly Queue<string> outgoing = new Queue<string>();
        /// <summary>
        /// The requests made while the websocket was broken, by their ids in the order of the calls. They are sent
        /// after every resumption until the server has replied.
        /// </summary>
        readonly List<KeyValuePair<string, string>> deferred = new List<KeyValuePair<string, string>>();
        readonly Queue<SignallingEvent> events = new Queue<SignallingEvent>();
        readonly HashSet<string> pending = new HashSet<string>();
        readonly Dictionary<string, ObjectPose> poses = new Dictionary<string, ObjectPose>();
        Phase phase = Phase.Apart;
        Viewpoint viewpoint;
        long maxBitrate, minBitrate, retryAt, retry = firstRetry, noticedAt, askedAt, heardAt, attemptedAt;
        string session = "", secret = "", joinId = "", leaveId = "";
        /// <summary>
        /// unsure is true if the websocket broke before the replies to requests: the server may not have read them.
        /// </summary>
        bool limited, resuming, unsure;
        /// <summary>Whether the websocket is to be closed because the server is silent.</summary>
        bool silent;
        /// <summary>The time when media has arrived last, as the program has told.</summary>
        long mediaAt = -Silence.ExpectMedia;
        /// <summary>The number of requests, and of the rounds of attempts that have failed since Joined.</summary>
        int requests, rounds;

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

        /// <summary>Whether the opened websocket is still usable.</summary>
        public bool WantsSocket { get { return phase == Phase.Connecting || phase == Phase.Joining || phase == Phase.Joined; } }

        /// <summary>Whether the websocket is to be closed without waiting for the server, because the server is silent.</summary>
        public bool IsSilent { get { return silent; } }

        /// <summary>The number of events lost because the program did not take them in time.</summary>
        public long EventsLost { get; private set; }

        /// <summary>The time for opening a websocket, and for the reply to the join if there are several servers.</summary>
        public long AttemptMilliseconds { get { return servers.AttemptTime(clock.RoundTrip / millisecond, rounds); } }

        /// <summary>Whether a websocket must be opened now. If so, the caller opens one and calls Opened or Broke.</summary>
        public bool TakeConnect(long now)
        {
            if (phase != Phase.Apart || now < retryAt)
            {
                return false;
            }
            phase = Phase.Connecting;
            attemptedAt = now;
            silent = false;
            return true;
        }

        /// <summary>Records that the websocket is open.</summary>
        public void Opened(long now)
        {
            if (phase != Phase.Connecting)
            {
                return;
            }
            phase = Phase.Joining;
            heardAt = now;
            askedAt = now;
            SendJoin();
        }

        /// <summary>
        /// Records that the websocket has ended, or could not be opened. The code is that of its close frame or of the
        /// rejection; empty for a network error.
        /// </summary>
        public void Broke(string code, string reason, long now)
        {
            if (phase == Phase.Over || phase == Phase.Apart)
            {
                return;
            }
            Forget("the websocket broke before the reply");
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
        /// Performs timed actions. It must be called every few milliseconds; false means that the server is silent and
        /// the websocket must be closed.
        /// </summary>
        public bool Step(long now)
        {
            if (phase != Phase.Joined && phase != Phase.Joining)
            {
                return true;
            }
            bool late = phase == Phase.Joining && servers.Several && now - attemptedAt > AttemptMilliseconds * millisecond;
            if (late || now - heardAt > longestSilence)
            {
                silent = true;
                return false;
            }
            if (phase != Phase.Joined || outgoing.Count >= maxWaiting / 2)
            {
                return true;
            }
            Silence.Verdict verdict = silence.Step(now, Math.Max(heardAt, mediaAt), now - mediaAt < Silence.ExpectMedia, servers.Several);
            if (verdict == Silence.Verdict.Leave)
            {
                silent = true;
                return false;
            }
            if (verdict == Silence.Verdict.Ask || now - askedAt >= (clock.Known ? timeInterval : timeInterval / 10))
            {
                askedAt = now;
                Send(Requests.Time("t" + ++requests, now));
            }
            if (now - noticedAt >= noticeInterval && (viewpoint != null || poses.Count > 0))
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

        /// <summary>Returns the next message for the websocket, or null.</summary>
        public string NextOutgoing()
        {
            return outgoing.Count > 0 ? outgoing.Dequeue() : null;
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
            Send(Requests.Join(joinId, settings, session, own, resuming ? "" : ticket, renewing));
        }

        /// <summary>Removes the messages for the websocket, and reports the requests without a reply with the reason.</summary>
        void Forget(string reason)
        {
            outgoing.Clear();
            foreach (string id in pending)
            {
                Tell(new RequestFailed { Id = id, Code = "interrupted", Message = reason });
            }
            unsure = unsure || pending.Count > 0;
            pending.Clear();
        }

        void SendNotices(long now)
        {
            if (viewpoint != null)
            {
                Send(Requests.SetViewpoint(viewpoint, clock.Known ? clock.At(now) : 0));
                viewpoint = null;
            }
            foreach (KeyValuePair<string, ObjectPose> pose in poses)
            {
                Send(Requests.SetPose(pose.Key, pose.Value));
            }
            poses.Clear();
        }

        void End(string code, string message)
        {
            phase = Phase.Over;
            Tell(new Ended { Code = code, Message = message });
        }

        string NewRequest()
        {
            string id = "r" + ++requests;
            pending.Add(id);
            return id;
        }

        void Send(string message)
        {
            if (outgoing.Count >= maxWaiting)
            {
                throw new ProtocolException("more than " + maxWaiting + " messages wait for the websocket");
            }
            outgoing.Enqueue(message);
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
