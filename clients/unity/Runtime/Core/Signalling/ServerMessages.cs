using System.Collections.Generic;
using Newtonsoft.Json.Linq;

namespace Volsfu.Signalling
{
    /// <summary>The reply to a join.</summary>
    sealed class Entry
    {
        internal Joined Joined;
        internal List<Participant> Participants;
        internal List<string> Nodes;
        internal string Session, Secret;
    }

    /// <summary>
    /// Reads the parts of a server's messages; throws ProtocolException for deviations from docs/signalling.md.
    /// </summary>
    static class ServerMessages
    {
        const int maxUrl = 2048;
        const int maxPeople = 1 << 16;

        internal static Entry Entry(JToken json)
        {
            return new Entry
            {
                Joined = Joined(json),
                Participants = Participants(json),
                Nodes = Nodes(json),
                Session = json.Text("session", Limits.Format),
                Secret = json.Object("resume").Text("secret", Limits.Format)
            };
        }

        static Joined Joined(JToken json)
        {
            var joined = new Joined { Room = json.Text("room", Limits.Name), Identity = json.Text("identity", Limits.Name), Resumed = json.Flag("resumed") };
            joined.Lost = joined.Resumed && json.Find("restored") != null && !json.Flag("restored");
            foreach (JToken server in json.List("ice_servers", Limits.Publications))
            {
                var ice = new IceServer { Username = server.OptionalText("username", maxUrl), Credential = server.OptionalText("credential", maxUrl) };
                foreach (JToken url in server.List("urls", Limits.Publications))
                {
                    ice.Urls.Add(url.AsText("urls"));
                }
                joined.IceServers.Add(ice);
            }
            return joined;
        }

        /// <summary>Returns the addresses in a list of servers, none without a list. Other entries are skipped.</summary>
        internal static List<string> Nodes(JToken json)
        {
            var addresses = new List<string>();
            foreach (JToken node in json.List("nodes", Limits.Slots))
            {
                JToken address = node.Find("url");
                if (address != null && address.Type == JTokenType.String && address.AsText("url").Length <= Limits.Url)
                {
                    addresses.Add(address.AsText("url"));
                }
            }
            return addresses;
        }

        internal static List<Participant> Participants(JToken json)
        {
            var participants = new List<Participant>();
            foreach (JToken participant in json.List("participants", Limits.Participants))
            {
                participants.Add(Participant.Read(participant));
            }
            return participants;
        }

        internal static OfferReceived Offer(JToken json)
        {
            var offer = new OfferReceived { Offer = (int)json.Integer("offer", 0, int.MaxValue), Sdp = json.Text("sdp", Limits.Message) };
            foreach (JToken line in json.List("media", Limits.Slots * 2))
            {
                offer.Media.Add(new MediaLine
                {
                    Mid = line.Text("mid", Limits.Mid),
                    Role = line.Text("role", Limits.Name),
                    Publication = line.OptionalText("publication", Limits.Name),
                    Tile = (int)line.OptionalInteger("tile", 0, Limits.Tiles - 1, 0),
                    Quality = (int)line.OptionalInteger("quality", 0, Limits.Qualities - 1, 0)
                });
            }
            return offer;
        }

        internal static CandidateReceived Candidate(JToken json)
        {
            return new CandidateReceived
            {
                Candidate = json.Text("candidate", maxUrl),
                Mid = json.OptionalText("mid", Limits.Mid),
                LineIndex = (int)json.OptionalInteger("line_index", 0, Limits.Slots - 1, 0)
            };
        }

        internal static AssignmentsChanged Assignments(JToken json)
        {
            var changed = new AssignmentsChanged();
            foreach (JToken slot in json.List("assignments", Limits.Slots))
            {
                var assignment = new Assignment { Mid = slot.Text("mid", Limits.Mid), Generation = slot.Integer("generation", 0, long.MaxValue) };
                JToken track = slot.Find("track");
                if (track != null)
                {
                    assignment.Participant = track.Text("participant", Limits.Name);
                    assignment.Publication = track.Text("publication", Limits.Name);
                    assignment.Tile = (int)track.Integer("tile", 0, Limits.Tiles - 1);
                    assignment.Description = (int)slot.OptionalInteger("quality", 0, Limits.Qualities - 1, -1);
                }
                changed.Assignments.Add(assignment);
            }
            return changed;
        }

        internal static Published Published(JToken json)
        {
            return new Published { Participant = json.Text("participant", Limits.Name), Publication = Publication.Read(json.Object("publication")) };
        }

        internal static Unpublished Unpublished(JToken json)
        {
            return new Unpublished { Participant = json.Text("participant", Limits.Name), Publication = json.Text("publication", Limits.Name) };
        }

        internal static ParticipantLeft Left(JToken json)
        {
            return new ParticipantLeft { Identity = json.Text("identity", Limits.Name), Reason = json.Text("reason", maxPeople) };
        }

        internal static PoseChanged Pose(JToken json)
        {
            return new PoseChanged
            {
                Participant = json.OptionalText("participant", Limits.Name),
                Publication = json.Text("publication", Limits.Name),
                Pose = ObjectPose.Read(json)
            };
        }

        internal static Bandwidth Bandwidth(JToken json)
        {
            return new Bandwidth
            {
                Estimate = json.Integer("estimate_bps", 0, Limits.Bitrate),
                Allocated = json.Integer("allocated_bps", 0, Limits.Bitrate),
                Wanted = json.Integer("wanted_bps", 0, Limits.Bitrate)
            };
        }

        internal static RequestFailed Error(JToken json)
        {
            return new RequestFailed
            {
                Id = json.OptionalText("id", Limits.Name),
                Code = json.Text("code", Limits.Name),
                Message = json.Text("message", maxPeople),
                RetryAfterMilliseconds = json.OptionalInteger("retry_after_ms", 0, int.MaxValue, 0)
            };
        }

        internal static Closing Closing(JToken json)
        {
            return new Closing
            {
                Code = json.Text("code", Limits.Name),
                Message = json.Text("message", maxPeople),
                GraceMilliseconds = json.OptionalInteger("grace_ms", 0, int.MaxValue, 0)
            };
        }
    }
}
