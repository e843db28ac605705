using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;

namespace Volsfu.Signalling
{
    /// <summary>
    /// A participant of a room by signalling v1: it joins, resumes after a loss of the websocket, and stores the state
    /// sent by the server. All methods may be called from any thread and do not wait for the network. The client has
    /// its own threads; TryTakeEvent returns the events, for instance once per drawn image.
    /// </summary>
    public sealed class SignallingClient : IDisposable
    {
        /// <summary>The maximum wait of an idle thread, in milliseconds.</summary>
        const int tick = 5;
        /// <summary>The time limit for leaving, in milliseconds.</summary>
        const int leaveTimeout = 2000;

        static readonly DateTime epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);

        /// <summary>Guards all of the following, and is pulsed when there may be something to do.</summary>
        readonly object gate = new object();
        readonly JoinSettings settings;
        readonly SignallingSession session;
        readonly Stopwatch clock = Stopwatch.StartNew();
        readonly long beganAt = (DateTime.UtcNow - epoch).Ticks / 10;
        readonly Thread worker;
        /// <summary>The sockets that are opened or used: one, and two during a move.</summary>
        readonly List<SignallingSocket> sockets = new List<SignallingSocket>();
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
        public void Answer(OfferReceived offer, string sdp) { Do(() => session.Answer(offer, sdp)); }

        /// <summary>SignallingSession.AddCandidate.</summary>
        public void AddCandidate(int connection, string candidate, string mid, int lineIndex)
        {
            Do(() => session.AddCandidate(connection, candidate, mid, lineIndex));
        }

        /// <summary>SignallingSession.LeaveFormer.</summary>
        public void LeaveFormer() { Do(session.LeaveFormer); }

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

        /// <summary>Leaves the room, and waits for the end of the threads.</summary>
        public void Dispose()
        {
            bool joined;
            lock (gate)
            {
                joined = session.IsJoined;
                session.Leave();
                Monitor.PulseAll(gate);
            }
            if (joined && worker.Join(leaveTimeout))
            {
                return;
            }
            lock (gate)
            {
                stopping = true;
                sockets.ForEach(socket => socket.Cancel());
                Monitor.PulseAll(gate);
            }
            worker.Join();
        }

        string Ask(Func<string> request)
        {
            lock (gate)
            {
                string id = request();
                Monitor.PulseAll(gate);
                return id;
            }
        }

        void Do(Action action)
        {
            lock (gate)
            {
                action();
                Monitor.PulseAll(gate);
            }
        }

        /// <summary>Returns microseconds of UTC since 1970, from a clock that never decreases.</summary>
        long Now()
        {
            return beganAt + clock.ElapsedTicks * 1000000 / Stopwatch.Frequency;
        }

        /// <summary>Starts a thread for each websocket, and ends when all have ended.</summary>
        void Work()
        {
            lock (gate)
            {
                while (!stopping && !session.IsOver)
                {
                    SignallingLink link = session.TakeLink(Now());
                    if (link == null)
                    {
                        Monitor.Wait(gate, tick);
                        continue;
                    }
                    var socket = new SignallingSocket(text => Received(link, text));
                    sockets.Add(socket);
                    new Thread(() => Use(link, socket)) { IsBackground = true, Name = "volsfu signalling, writing" }.Start();
                }
                while (sockets.Count > 0)
                {
                    Monitor.Wait(gate);
                }
            }
        }

        void Use(SignallingLink link, SignallingSocket socket)
        {
            string code, reason;
            Carry(link, socket, out code, out reason);
            lock (gate)
            {
                session.Broke(link, code, reason, Now());
                sockets.Remove(socket);
                socket.Dispose();
                Monitor.PulseAll(gate);
            }
        }

        /// <summary>Opens the websocket and sends what waits for it, until its end.</summary>
        void Carry(SignallingLink link, SignallingSocket socket, out string code, out string reason)
        {
            if (!socket.Open(Address.Signal(link.Server), settings.Token, (int)link.AttemptMilliseconds, out code, out reason))
            {
                return;
            }
            lock (gate)
            {
                session.Opened(link, Now());
            }
            while (!stopping && !socket.HasEnded && Serve(link, socket))
            {
                lock (gate)
                {
                    if (!link.HasOutgoing)
                    {
                        Monitor.Wait(gate, tick);
                    }
                }
            }
            socket.Close(link.IsSilent);
            code = socket.Code;
            reason = link.IsSilent ? "the server does not answer" : socket.Reason;
        }

        /// <summary>Sends the waiting messages; returns false if the socket is no longer usable.</summary>
        bool Serve(SignallingLink link, SignallingSocket socket)
        {
            lock (gate)
            {
                if (!session.Step(link, Now()))
                {
                    return false;
                }
            }
            for (;;)
            {
                string text;
                lock (gate)
                {
                    text = link.NextOutgoing();
                    if (text == null)
                    {
                        return session.Uses(link);
                    }
                }
                if (!socket.Send(text))
                {
                    return false;
                }
            }
        }

        void Received(SignallingLink link, string text)
        {
            lock (gate)
            {
                session.Received(link, text, Now());
                Monitor.PulseAll(gate);
            }
        }
    }
}
