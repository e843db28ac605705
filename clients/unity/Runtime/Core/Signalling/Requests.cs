using System;
using System.Collections.Generic;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Volsfu.Signalling
{
    /// <summary>A receiver's choice for one tile of a publication, or for all of them.</summary>
    public sealed class Choice
    {
        /// <summary>The publisher.</summary>
        public string Participant = "";
        /// <summary>The publication's name.</summary>
        public string Publication = "";
        /// <summary>The tile's index from 0; -1 means all tiles, and replaces earlier choices for single ones.</summary>
        public int Tile = -1;
        /// <summary>
        /// The wanted qualities: null leaves the decision to the server, none is off, and more than one are for
        /// descriptions only.
        /// </summary>
        public int[] Qualities;

        /// <summary>Creates a choice of one quality, -1 for off, for a tile, -1 for all of them.</summary>
        public static Choice Of(string participant, string publication, int tile, int quality)
        {
            return new Choice { Participant = participant, Publication = publication, Tile = tile, Qualities = quality < 0 ? new int[0] : new[] { quality } };
        }

        internal JObject Write()
        {
            JObject json = new JObject().Member("participant", Checks.Name("participant", Participant)).Member("publication", Checks.Name("publication", Publication));
            if (Tile >= 0)
            {
                Checks.Range("tile", Tile, 0, Limits.Tiles - 1);
                json.Member("tile", Tile);
            }
            return json.Member("quality", WriteQualities());
        }

        JToken WriteQualities()
        {
            if (Qualities == null)
            {
                return "auto";
            }
            Checks.Range("qualities of a choice", Qualities.Length, 0, Limits.Qualities);
            foreach (int quality in Qualities)
            {
                Checks.Range("quality", quality, 0, Limits.Qualities - 1);
            }
            if (Qualities.Length < 2)
            {
                return Qualities.Length == 0 ? -1 : Qualities[0];
            }
            var list = new JArray();
            foreach (int quality in Qualities)
            {
                list.Add((JToken)quality);
            }
            return list;
        }
    }

    /// <summary>The viewpoint of the receiver.</summary>
    public sealed class Viewpoint
    {
        /// <summary>The position of the eye in the room's coordinates.</summary>
        public double[] Position = new double[3];
        /// <summary>The orientation of the eye; 0, 0, 0, 1 looks along -z with +y up.</summary>
        public double[] Orientation = { 0, 0, 0, 1 };
        /// <summary>The vertical angle of view in degrees, 1 to 170.</summary>
        public double FieldOfView = 60;
        /// <summary>The width of the view divided by its height, 0.1 to 10.</summary>
        public double Aspect = 1;

        internal void Check()
        {
            Checks.Vector("position", Position, 3);
            Checks.Vector("orientation", Orientation, 4);
            Checks.Range("field of view", FieldOfView, 1, 170);
            Checks.Range("aspect", Aspect, 0.1, 10);
        }
    }

    /// <summary>The texts of a client's messages.</summary>
    static class Requests
    {
        /// <summary>
        /// A join; with a session it resumes the session with the secret. The start rate is 0 for the server's own. The
        /// ticket is that of a server that has moved the client, empty for none.
        /// </summary>
        internal static string Join(string id, JoinSettings settings, long start, string session, string secret, string ticket, bool newConnection)
        {
            var publications = new JArray();
            foreach (Publication publication in settings.Publications)
            {
                publications.Add(publication.Write());
            }
            JObject json = Begin("join", id).Member("version", 1).Optional("room", settings.Room).Optional("identity", settings.Identity)
                .Member("publications", publications).Member("receive", settings.Receive).Optional("deadline_ms", settings.DeadlineMilliseconds)
                .Optional("max_bps", settings.MaxBitrate).Optional("start_bps", start).Member("moves", true).Optional("ticket", ticket);
            if (session != "")
            {
                json.Member("resume", new JObject().Member("session", session).Member("secret", secret).Member("new_connection", newConnection));
            }
            return End(json);
        }

        internal static string Publish(string id, Publication publication)
        {
            return End(Begin("publish", id).Member("publication", publication.Write()));
        }

        internal static string Unpublish(string id, string publication)
        {
            return End(Begin("unpublish", id).Member("publication", Checks.Name("publication", publication)));
        }

        internal static string Answer(int offer, string sdp)
        {
            return End(Begin("answer", "").Member("offer", offer).Member("sdp", sdp));
        }

        internal static string Candidate(string candidate, string mid, int lineIndex)
        {
            return End(Begin("candidate", "").Member("candidate", candidate).Optional("mid", mid).Optional("line_index", lineIndex));
        }

        internal static string Acknowledge(IEnumerable<Assignment> assignments)
        {
            var slots = new JArray();
            foreach (Assignment assignment in assignments)
            {
                slots.Add(new JObject().Member("mid", assignment.Mid).Member("generation", assignment.Generation));
            }
            return End(Begin("acknowledge", "").Member("slots", slots));
        }

        internal static string SetQuality(string id, IReadOnlyCollection<Choice> choices)
        {
            Checks.Range("choices", choices.Count, 1, Limits.Slots);
            var list = new JArray();
            foreach (Choice choice in choices)
            {
                list.Add(choice.Write());
            }
            return End(Begin("set_quality", id).Member("choices", list));
        }

        /// <summary>The start rate, 0 for none, is adjusted to the other two.</summary>
        internal static string SetLimits(string id, long most, long least, long start)
        {
            Checks.Range("max_bps", most, 0, Limits.Bitrate);
            Checks.Range("min_bps", least, 0, Limits.Bitrate);
            return End(Begin("limits", id).Optional("max_bps", most).Optional("min_bps", least).Optional("start_bps", StartRate(start, most, least)));
        }

        /// <summary>Adjusts a start rate, 0 for none, to limits.</summary>
        internal static long StartRate(long start, long most, long least)
        {
            if (start == 0)
            {
                return 0;
            }
            start = Math.Max(start, least);
            return most > 0 ? Math.Min(start, most) : start;
        }

        internal static string SetViewpoint(Viewpoint viewpoint, long at)
        {
            return End(Begin("viewpoint", "").Optional("at_us", at).Numbers("position", viewpoint.Position).Numbers("orientation", viewpoint.Orientation)
                .Number("fov", viewpoint.FieldOfView).Number("aspect", viewpoint.Aspect));
        }

        internal static string SetPose(string publication, ObjectPose pose)
        {
            JObject json = Begin("pose", "").Member("publication", Checks.Name("publication", publication));
            pose.Write(json);
            return End(json);
        }

        internal static string Time(string id, long now)
        {
            return End(Begin("time", id).Member("t0_us", now));
        }

        internal static string Leave(string id)
        {
            return End(Begin("leave", id));
        }

        static JObject Begin(string type, string id)
        {
            return new JObject().Member("type", type).Optional("id", id);
        }

        static string End(JObject json)
        {
            return json.ToString(Formatting.None);
        }
    }
}
