using System.Collections.Generic;

namespace Volsfu.Signalling
{
    public sealed partial class SignallingSession
    {
        /// <summary>
        /// Sends choices of qualities. Choices are stored, and sent again if a session could not be resumed. Returns
        /// the id of the request, which RequestDone or RequestFailed contains; "" if the client is not joined, and the
        /// choices are sent after joining.
        /// </summary>
        public string SetQuality(IReadOnlyCollection<Choice> wishes)
        {
            string text = Requests.SetQuality("r" + (requests + 1), wishes);
            foreach (Choice choice in wishes)
            {
                choices.Note(choice);
            }
            return Ask(text);
        }

        /// <summary>
        /// Sets the maximum bit rate for this client, and the known minimum capacity of its link, in bit/s; 0 is no
        /// limit. The limits are stored as choices are.
        /// </summary>
        public string SetLimits(long most, long least)
        {
            string text = Requests.SetLimits("r" + (requests + 1), most, least, settings.StartBitrate);
            maxBitrate = most;
            minBitrate = least;
            limited = true;
            return Ask(text);
        }

        /// <summary>
        /// Announces one more publication, whose lines the next offer contains. It is announced again if a session
        /// could not be resumed.
        /// </summary>
        public string Publish(Publication publication)
        {
            string text = Requests.Publish("r" + (requests + 1), publication);
            settings.Publications.RemoveAll(p => p.Name == publication.Name);
            Checks.Range("publications", settings.Publications.Count, 0, Limits.Publications - 1);
            settings.Publications.Add(publication);
            return Ask(text);
        }

        /// <summary>Ends a publication of this client.</summary>
        public string Unpublish(string publication)
        {
            string text = Requests.Unpublish("r" + (requests + 1), publication);
            settings.Publications.RemoveAll(p => p.Name == publication);
            poses.Remove(publication);
            posed.Remove(publication);
            return Ask(text);
        }

        /// <summary>
        /// Sets the present viewpoint. The newest is sent at most 60 times per second; the last one remains in force.
        /// </summary>
        public void SetViewpoint(Viewpoint eye)
        {
            eye.Check();
            viewpoint = eye;
            looked = true;
        }

        /// <summary>Sets the present pose of an own object; sent as viewpoints are.</summary>
        public void SetPose(string publication, ObjectPose pose)
        {
            Checks.Name("publication", publication);
            Checks.Vector("position", pose.Position, 3);
            Checks.Vector("orientation", pose.Orientation, 4);
            Checks.Range("scale", pose.Scale == 0 ? 1 : pose.Scale, 0.001, 1000);
            Checks.Range("priority", pose.Priority == 0 ? 1 : pose.Priority, 0.01, 100);
            if (poses.Count < Limits.Publications || poses.ContainsKey(publication))
            {
                poses[publication] = pose;
                posed.Add(publication);
            }
        }

        /// <summary>Answers an offer with the description of the program's own peer connection.</summary>
        public void Answer(OfferReceived offer, string sdp)
        {
            Checks.Range("characters of the answer", sdp.Length, 1, Limits.Message / 2);
            SignallingLink link = LinkOf(offer.Connection);
            if (link != null)
            {
                link.Send(Requests.Answer(offer.Offer, sdp));
            }
        }

        /// <summary>
        /// Sends a candidate of the program's own peer connection, whose number Joined and the offers have; an empty
        /// candidate means that there are no more.
        /// </summary>
        public void AddCandidate(int connection, string candidate, string mid, int lineIndex)
        {
            Checks.Range("characters of the candidate", candidate.Length, 0, 1024);
            Checks.Range("line index", lineIndex, 0, Limits.Slots - 1);
            SignallingLink link = LinkOf(connection);
            if (link != null)
            {
                link.Send(Requests.Candidate(candidate, mid, lineIndex));
            }
        }

        /// <summary>Returns the websocket for messages about a peer connection; null if the connection has ended or has none.</summary>
        SignallingLink LinkOf(int connection)
        {
            SignallingLink link = former != null && former.Connection == connection ? former : phase == Phase.Joined ? present : null;
            return link != null && link.Connection == connection ? link : null;
        }

        /// <summary>Leaves the room permanently. Ended follows.</summary>
        public void Leave()
        {
            making = null;
            if (phase == Phase.Joined)
            {
                leaveId = NewRequest();
                Send(Requests.Leave(leaveId));
            }
            else if (phase != Phase.Over)
            {
                End("", "left");
            }
        }

        string Ask(string text)
        {
            if (phase != Phase.Joined)
            {
                string waiting = "r" + ++requests;
                if (deferred.Count < maxWaiting)
                {
                    deferred.Add(new KeyValuePair<string, string>(waiting, text));
                }
                return "";
            }
            string id = NewRequest();
            Send(text);
            return id;
        }
    }
}
