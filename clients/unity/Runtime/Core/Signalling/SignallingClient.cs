using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;

namespace Volsfu.Signalling
{
    /// <summary>
    /// A participant of a room by signalling v1: it joins, resumes after a loss of the websocket, and stores the state
    /// sent by the server. All methods may be called from any thread and do not wait for the network. The client has
    /// its own thread; TryTakeEvent returns the events, for instance once per drawn image.
    /// </summary>
    public sealed class SignallingClient : IDisposable
    {
        /// <summary>The maximum wait of the idle thread, in milliseconds.</summary>
        const int tick = 5;
        /// <summary>The time limit for leaving, in milliseconds.</summary>
        const int leaveTimeout = 2000;

        static readonly DateTime epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);

        readonly object gate = new object();
        readonly JoinSettings settings;
        readonly SignallingSession session;
        readonly AutoResetEvent wake = new AutoResetEvent(false);
        readonly Stopwatch clock = Stopwatch.StartNew();
        readonly long beganAt = (DateTime.UtcNow - epoch).Ticks / 10;
        readonly Thread worker;
        /// <summary>The socket that the worker opens or uses, null between two.</summary>
        SignallingSocket current;
        volatile bool stopping;

        /// <summary>Starts joining. Throws ProtocolException for settings that the protocol does not allow.</summary>
        public SignallingClient(JoinSettings settings)
        {
            this.settings = settings;
            session = new SignallingSession(settings);
            worker = new Thread(Work) { IsBackground = true, Name = "volsfu signalling" };
            worker.Start();
        }

        /// <summary>Whether the server has accepted the client.</summary>
        public bool IsJoined { get { lock (gate) { return session.IsJoined; } } }

        /// <summary>The number of events lost because the program did not take them.</summary>
        public long EventsLost { get { lock (gate) { return session.EventsLost; } } }

        /// <summary>Returns a copy of the participants of the room and their publications.</summary>
        public List<Participant> Participants() { lock (gate) { return session.Participants(); } }

        /// <summary>
        /// The present time of the server's clock, in microseconds of UTC since 1970; the host's own while the server's
        /// is unknown.
        /// </summary>
        public long ServerTime() { lock (gate) { return session.ServerTime(Now()); } }

        /// <summary>Returns the oldest event that was not yet taken.</summary>
        public bool TryTakeEvent(out SignallingEvent taken)
        {
            lock (gate)
            {
                taken = session.NextEvent();
                return taken != null;
            }
        }

        /// <summary>SignallingSession.SetQuality.</summary>
        public string SetQuality(params Choice[] choices) { return Ask(() => session.SetQuality(choices)); }

        /// <summary>SignallingSession.SetLimits.</summary>
        public string SetLimits(long most, long least) { return Ask(() => session.SetLimits(most, least)); }

        /// <summary>SignallingSession.Publish.</summary>
        public string Publish(Publication publication) { return Ask(() => session.Publish(publication)); }

        /// <summary>SignallingSession.Unpublish.</summary>
        public string Unpublish(string publication) { return Ask(() => session.Unpublish(publication)); }

        /// <summary>SignallingSession.SetViewpoint.</summary>
        public void SetViewpoint(Viewpoint viewpoint)
        {
            lock (gate)
            {
                session.SetViewpoint(viewpoint);
            }
        }

        /// <summary>SignallingSession.SetPose.</summary>
        public void SetPose(string publication, ObjectPose pose)
        {
            lock (gate)
            {
                session.SetPose(publication, pose);
            }
        }

        /// <summary>SignallingSession.Answer.</summary>
        public void Answer(int offer, string sdp)
        {
            lock (gate)
            {
                session.Answer(offer, sdp);
            }
            wake.Set();
        }

        /// <summary>SignallingSession.AddCandidate.</summary>
        public void AddCandidate(string candidate, string mid, int lineIndex)
        {
            lock (gate)
            {
                session.AddCandidate(candidate, mid, lineIndex);
            }
            wake.Set();
        }

        /// <summary>
        /// SignallingSession.MediaArrived. A program with its own peer connection calls it for every packet or frame, or
        /// at least twice per second.
        /// </summary>
        public void MediaArrived()
        {
            lock (gate)
            {
                session.MediaArrived(Now());
            }
        }

        /// <summary>Leaves the room, and waits for the end of the thread.</summary>
        public void Dispose()
        {
            bool joined;
            lock (gate)
            {
                joined = session.IsJoined;
                session.Leave();
            }
            wake.Set();
            if (joined && worker.Join(leaveTimeout))
            {
                return;
            }
            lock (gate)
            {
                stopping = true;
                if (current != null)
                {
                    current.Cancel();
                }
            }
            worker.Join();
        }

        string Ask(Func<string> request)
        {
            string id;
            lock (gate)
            {
                id = request();
            }
            wake.Set();
            return id;
        }

        /// <summary>Returns microseconds of UTC since 1970, from a clock that never decreases.</summary>
        long Now()
        {
            return beganAt + clock.ElapsedTicks * 1000000 / Stopwatch.Frequency;
        }

        void Work()
        {
            while (!stopping)
            {
                bool connect;
                lock (gate)
                {
                    if (session.IsOver)
                    {
                        return;
                    }
                    connect = session.TakeConnect(Now());
                }
                if (connect)
                {
                    Connect();
                }
                else
                {
                    wake.WaitOne(tick);
                }
            }
        }

        void Connect()
        {
            using (var socket = new SignallingSocket(Received))
            {
                lock (gate)
                {
                    current = socket;
                }
                Use(socket);
                lock (gate)
                {
                    current = null;
                }
            }
        }

        void Use(SignallingSocket socket)
        {
            string code, reason;
            Uri address;
            int limit;
            lock (gate)
            {
                address = Address.Signal(session.Server);
                limit = (int)session.AttemptMilliseconds;
            }
            if (!socket.Open(address, settings.Token, limit, out code, out reason))
            {
                Broke(code, reason);
                return;
            }
            lock (gate)
            {
                session.Opened(Now());
            }
            while (!stopping && !socket.HasEnded && Serve(socket))
            {
                wake.WaitOne(tick);
            }
            bool silent;
            lock (gate)
            {
                silent = session.IsSilent;
            }
            socket.Close(silent);
            Broke(socket.Code, silent ? "the server does not answer" : socket.Reason);
        }

        /// <summary>Sends the waiting messages; returns false if the socket is no longer usable.</summary>
        bool Serve(SignallingSocket socket)
        {
            lock (gate)
            {
                if (!session.Step(Now()))
                {
                    return false;
                }
            }
            for (;;)
            {
                string text;
                lock (gate)
                {
                    text = session.NextOutgoing();
                    if (text == null)
                    {
                        return session.WantsSocket;
                    }
                }
                if (!socket.Send(text))
                {
                    return false;
                }
            }
        }

        void Received(string text)
        {
            lock (gate)
            {
                session.Received(text, Now());
            }
            wake.Set();
        }

        void Broke(string code, string reason)
        {
            lock (gate)
            {
                session.Broke(code, reason, Now());
            }
        }
    }
}
