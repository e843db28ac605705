using System.Collections.Generic;
using Newtonsoft.Json.Linq;

namespace Volsfu.Signalling
{
    public sealed partial class SignallingSession
    {
        /// <summary>The year 2255, in microseconds: sums of stamps stay within 64 bits.</summary>
        const long maxStamp = 9000000000000000;

        /// <summary>
        /// Handles a message. An unreadable one is reported as Unreadable and changes nothing; one of an unknown type
        /// is ignored.
        /// </summary>
        public void Received(SignallingLink link, string text, long now)
        {
            if (!Uses(link) || (IsPresent(link) && phase < Phase.Joining))
            {
                return;
            }
            link.HeardAt = now;
            try
            {
                JToken json = JsonReading.Parse(text);
                string type = json.Text("type", Limits.Name);
                if (IsMaking(link))
                {
                    HandleMaking(type, json, now);
                }
                else if (IsFormer(link))
                {
                    HandleFormer(type, json);
                }
                else
                {
                    Handle(type, json, now);
                }
            }
            catch (ProtocolException e)
            {
                Tell(new Unreadable { Problem = e.Message });
            }
        }

        void Handle(string type, JToken json, long now)
        {
            switch (type)
            {
                case "joined": Accept(ServerMessages.Entry(json)); break;
                case "ok": Done(json.OptionalText("id", Limits.Name)); break;
                case "error": Refused(ServerMessages.Error(json), now); break;
                case "time_reply": Learn(json, now); break;
                case "bandwidth": Estimate(ServerMessages.Bandwidth(json)); break;
                case "pose": Tell(ServerMessages.Pose(json)); break;
                case "closing": Close(ServerMessages.Closing(json)); break;
                case "moved": Move(json, now); break;
                case "nodes": LearnNodes(json); break;
                default:
                    HandleConnection(present, type, json);
                    HandleCompany(type, json);
                    break;
            }
        }

        /// <summary>Handles the messages about the peer connection of a websocket.</summary>
        void HandleConnection(SignallingLink link, string type, JToken json)
        {
            switch (type)
            {
                case "assignments": Assign(link, ServerMessages.Assignments(json)); break;
                case "sending": Sent(link, json); break;
                case "offer":
                    OfferReceived offer = ServerMessages.Offer(json);
                    offer.Connection = link.Connection;
                    Tell(offer);
                    break;
                case "candidate":
                    CandidateReceived candidate = ServerMessages.Candidate(json);
                    candidate.Connection = link.Connection;
                    Tell(candidate);
                    break;
            }
        }

        void HandleCompany(string type, JToken json)
        {
            switch (type)
            {
                case "participant_joined":
                    var came = new ParticipantJoined { Participant = Participant.Read(json.Object("participant")) };
                    room.Come(came.Participant);
                    Tell(came);
                    break;
                case "participant_left":
                    ParticipantLeft left = ServerMessages.Left(json);
                    room.Go(left.Identity);
                    Tell(left);
                    break;
                case "published":
                    Published published = ServerMessages.Published(json);
                    room.Begin(published.Participant, published.Publication);
                    Tell(published);
                    break;
                case "unpublished":
                    Unpublished unpublished = ServerMessages.Unpublished(json);
                    room.End(unpublished.Participant, unpublished.Publication);
                    Tell(unpublished);
                    break;
            }
        }

        void Learn(JToken json, long now)
        {
            long t0 = json.Integer("t0_us", 0, now), t1 = json.Integer("t1_us", 0, maxStamp), t2 = json.Integer("t2_us", 0, maxStamp);
            clock.Learn(t0, t1, t2, now);
            silence.Measured(now - t0 - (t2 - t1));
        }

        void Estimate(Bandwidth bandwidth)
        {
            estimate = bandwidth.Estimate;
            Tell(bandwidth);
        }

        void Close(Closing closing)
        {
            // The other server may have the session already.
            if (making == null || closing.Code != "replaced")
            {
                Tell(closing);
            }
        }

        /// <summary>Processes the reply to the join on the websocket of the session.</summary>
        void Accept(Entry entry)
        {
            if (leftSilent && servers.AtPresent)
            {
                silence.Returned();
            }
            pending.Remove(joinId);
            bool renewed = !entry.Joined.Resumed || renewing;
            if (renewed)
            {
                EndFormer();
            }
            Enter(entry, renewed);
        }

        /// <summary>Continues with the state in the reply to a join, and with a new peer connection or the present one.</summary>
        void Enter(Entry entry, bool renewed)
        {
            Joined joined = entry.Joined;
            room.Enter(entry.Participants);
            session = entry.Session;
            secret = entry.Secret;
            connection += renewed ? 1 : 0;
            present.Connection = connection;
            joined.NewConnection = renewed;
            joined.Connection = connection;
            joined.Former = former == null ? 0 : former.Connection;
            leftSilent = false;
            servers.Arrive(entry.Nodes);
            phase = Phase.Joined;
            ticket = "";
            connectionLost = false;
            retry = firstRetry;
            moves = 0;
            rounds = 0;
            Tell(joined);
            foreach (Publication publication in joined.Lost ? settings.Publications : new List<Publication>())
            {
                Send(Requests.Publish("", publication));
            }
            if (!joined.Resumed || joined.Lost)
            {
                // The join and the statements of the state contain the requests.
                deferred.Clear();
            }
            foreach (KeyValuePair<string, string> request in deferred)
            {
                Send(request.Value);
            }
            // The choices come last, so that the newest ones prevail. A former server may have accepted some of them
            // after it had passed the state on.
            if (renewed || joined.Lost || unsure)
            {
                Restate();
            }
            unsure = false;
        }

        /// <summary>Sends all choices again, and lets the viewpoint and the poses be sent.</summary>
        void Restate()
        {
            looked = viewpoint != null;
            posed.UnionWith(poses.Keys);
            List<Choice> kept = choices.All();
            if (kept.Count > 0)
            {
                Send(Requests.SetQuality("", kept));
            }
            if (limited)
            {
                Send(Requests.SetLimits("", maxBitrate, minBitrate, settings.StartBitrate));
            }
        }

        void Done(string id)
        {
            if (id != "" && id == leaveId)
            {
                End("", "left");
            }
            else if (pending.Remove(id))
            {
                Tell(new RequestDone { Id = id });
            }
            else
            {
                Answered(id);
            }
        }

        /// <summary>Records the reply to a request that was made while the websocket was broken.</summary>
        void Answered(string id)
        {
            deferred.RemoveAll(request => request.Key == id);
        }

        void Refused(RequestFailed error, long now)
        {
            bool pended = pending.Remove(error.Id);
            Answered(error.Id);
            if (!pended || error.Id != joinId || phase != Phase.Joining)
            {
                Tell(error);
                return;
            }
            if (!resuming)
            {
                refusals.Add(error.Code, error.RetryAfterMilliseconds);
                BrokePresent(error.Code, error.Message, now);
            }
            else if (!IsLost(error.Code, error.RetryAfterMilliseconds))
            {
                Forget(present, "the server refused the session");
                Retry(error.Message, now);
            }
            else if (error.Code == "resume")
            {
                // The session is over, but the connection can be used for another.
                session = "";
                ticket = "";
                SendJoin();
            }
            else
            {
                End(error.Code, error.Message);
            }
        }

        void Assign(SignallingLink link, AssignmentsChanged changed)
        {
            List<Assignment> taken = link.Slots.Assign(changed.Assignments);
            if (taken.Count == 0)
            {
                return;
            }
            var carrying = new List<Assignment>();
            foreach (Assignment assignment in taken)
            {
                if (assignment.Participant != "")
                {
                    carrying.Add(assignment);
                }
            }
            if (carrying.Count > 0)
            {
                link.Send(Requests.Acknowledge(carrying));
            }
            Tell(new AssignmentsChanged { Connection = link.Connection, Assignments = taken });
        }

        void Sent(SignallingLink link, JToken json)
        {
            foreach (JToken slot in json.List("slots", Limits.Slots))
            {
                Assignment carried = link.Slots.Carried(slot.Text("mid", Limits.Mid), slot.Integer("generation", 0, long.MaxValue));
                if (carried == null)
                {
                    continue;
                }
                Tell(new Sending
                {
                    Connection = link.Connection,
                    Participant = carried.Participant,
                    Publication = carried.Publication,
                    Tile = carried.Tile,
                    Quality = (int)slot.Integer("quality", -1, Limits.Qualities - 1),
                    Reason = slot.Text("reason", Limits.Name),
                    DelayMicroseconds = slot.OptionalInteger("delay_us", 0, long.MaxValue, 0)
                });
            }
        }
    }
}
