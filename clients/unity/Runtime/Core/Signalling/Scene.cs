using System.Collections.Generic;
using Newtonsoft.Json.Linq;

namespace Volsfu.Signalling
{
    /// <summary>The codec of a publication's frames.</summary>
    public sealed class Codec
    {
        /// <summary>The true media type, such as "video/volumetric" or "audio/opus".</summary>
        public string MimeType = "video/volumetric";
        /// <summary>The RTP clock in Hz.</summary>
        public int ClockRate = 90000;
        /// <summary>Channels of sound; 0 for video.</summary>
        public int Channels;
        /// <summary>Parameters of the codec as in SDP's fmtp; may be empty.</summary>
        public string Format = "";

        internal JObject Write()
        {
            return new JObject().Member("mime_type", MimeType).Member("clock_rate", ClockRate).Optional("channels", Channels).Optional("fmtp", Format);
        }

        internal static Codec Read(JToken json)
        {
            return new Codec
            {
                MimeType = json.Text("mime_type", Limits.Name),
                ClockRate = (int)json.Integer("clock_rate", 1, 1000000),
                Channels = (int)json.OptionalInteger("channels", 0, 65535, 0),
                Format = json.OptionalText("fmtp", Limits.Format)
            };
        }
    }

    /// <summary>
    /// One spatial part of an object, with its box in metres in the publication's own coordinates: right-handed, x right, y up, z towards the viewer.
    /// </summary>
    public sealed class Tile
    {
        /// <summary>A human-readable name; may be empty.</summary>
        public string Label = "";
        /// <summary>The box's smallest x, y and z.</summary>
        public double[] Min = new double[3];
        /// <summary>The box's largest x, y and z.</summary>
        public double[] Max = new double[3];

        internal JObject Write()
        {
            return new JObject().Optional("label", Label).Member("box", new JObject().Numbers("min", Min).Numbers("max", Max));
        }

        internal static Tile Read(JToken json)
        {
            JToken box = json.Object("box");
            return new Tile { Label = json.OptionalText("label", Limits.Name), Min = box.Numbers("min", 3), Max = box.Numbers("max", 3) };
        }
    }

    /// <summary>One quality, the same for all tiles of a publication.</summary>
    public sealed class QualityInfo
    {
        /// <summary>A human-readable name; may be empty.</summary>
        public string Name = "";
        /// <summary>The nominal bit rate of one tile; 0 if unknown.</summary>
        public long Bitrate;

        internal JObject Write()
        {
            return new JObject().Optional("name", Name).Optional("bitrate_bps", Bitrate);
        }

        internal static QualityInfo Read(JToken json)
        {
            return new QualityInfo { Name = json.OptionalText("name", Limits.Name), Bitrate = json.OptionalInteger("bitrate_bps", 0, Limits.Bitrate, 0) };
        }
    }

    /// <summary>One object published by a participant, with tiles times qualities tracks.</summary>
    public sealed class Publication
    {
        /// <summary>Unique among the participant's publications.</summary>
        public string Name = "";
        /// <summary>Whether the publication is sound, which has one tile and one quality.</summary>
        public bool Audio;
        /// <summary>
        /// Whether the qualities of a tile complement each other (mode "descriptions"); otherwise a receiver gets at
        /// most one of them.
        /// </summary>
        public bool Descriptions;
        /// <summary>The codec of the frames.</summary>
        public Codec Codec = new Codec();
        /// <summary>
        /// Whether each frame begins with VR2Gather's header of 16 bytes (FrameHeader) instead of payload v1's own.
        /// </summary>
        public bool VR2Gather;
        /// <summary>The nominal frame rate; 0 if unknown.</summary>
        public double FrameRate;
        /// <summary>The tiles in the order of their indices.</summary>
        public List<Tile> Tiles = new List<Tile>();
        /// <summary>The qualities, ascending.</summary>
        public List<QualityInfo> Qualities = new List<QualityInfo>();

        internal JObject Write()
        {
            Checks.Range("tiles", Tiles.Count, 1, Limits.Tiles);
            Checks.Range("qualities", Qualities.Count, 1, Limits.Qualities);
            JArray tiles = new JArray(), levels = new JArray();
            foreach (Tile tile in Tiles)
            {
                tiles.Add(tile.Write());
            }
            foreach (QualityInfo level in Qualities)
            {
                levels.Add(level.Write());
            }
            JObject json = new JObject().Member("name", Checks.Name("publication", Name)).Member("kind", Audio ? "audio" : "video")
                .Member("mode", Descriptions ? "descriptions" : "alternatives").Member("codec", Codec.Write()).Optional("frame_rate", FrameRate);
            if (VR2Gather)
            {
                json.Member("vr2gather", true);
            }
            return json.Member("tiles", tiles).Member("qualities", levels);
        }

        /// <summary>Reads the JSON of an event of the C library. Throws ProtocolException for other texts.</summary>
        public static Publication Parse(string json) { return Read(JsonReading.Parse(json)); }

        internal static Publication Read(JToken json)
        {
            var publication = new Publication
            {
                Name = json.Text("name", Limits.Name),
                Audio = json.Text("kind", Limits.Name) == "audio",
                Descriptions = json.Text("mode", Limits.Name) == "descriptions",
                Codec = Codec.Read(json.Object("codec")),
                VR2Gather = json.Flag("vr2gather"),
                FrameRate = json.OptionalNumber("frame_rate", 0)
            };
            foreach (JToken tile in json.List("tiles", Limits.Tiles))
            {
                publication.Tiles.Add(Tile.Read(tile));
            }
            foreach (JToken level in json.List("qualities", Limits.Qualities))
            {
                publication.Qualities.Add(QualityInfo.Read(level));
            }
            return publication;
        }
    }

    /// <summary>A participant of the room with its publications.</summary>
    public sealed class Participant
    {
        /// <summary>The participant's identity, unique in the room.</summary>
        public string Identity = "";
        /// <summary>The publications of the participant, by name.</summary>
        public Dictionary<string, Publication> Publications = new Dictionary<string, Publication>();

        /// <summary>Reads the JSON of an event of the C library. Throws ProtocolException for other texts.</summary>
        public static Participant Parse(string json) { return Read(JsonReading.Parse(json)); }

        internal static Participant Read(JToken json)
        {
            var participant = new Participant { Identity = json.Text("identity", Limits.Name) };
            foreach (JToken publication in json.List("publications", Limits.Publications))
            {
                Publication read = Publication.Read(publication);
                participant.Publications[read.Name] = read;
            }
            return participant;
        }
    }

    /// <summary>
    /// A pose in the room's coordinates: right-handed, in metres, x right, y up; the rotation is a unit quaternion x,
    /// y, z, w. Unity's own coordinates are left-handed; Coordinates converts between them.
    /// </summary>
    public sealed class ObjectPose
    {
        /// <summary>x, y and z in metres.</summary>
        public double[] Position = new double[3];
        /// <summary>A unit quaternion x, y, z, w; 0, 0, 0, 1 looks along -z with +y up.</summary>
        public double[] Orientation = { 0, 0, 0, 1 };
        /// <summary>The scale of an object relative to its publication; 0 means 1.</summary>
        public double Scale;
        /// <summary>The weight of the object relative to others of the same visible size; 0 means 1.</summary>
        public double Priority;

        internal void Write(JObject json)
        {
            json.Numbers("position", Checks.Vector("position", Position, 3)).Numbers("orientation", Checks.Vector("orientation", Orientation, 4));
            json.Optional("scale", Scale).Optional("priority", Priority);
        }

        internal static ObjectPose Read(JToken json)
        {
            return new ObjectPose
            {
                Position = json.Numbers("position", 3),
                Orientation = json.Numbers("orientation", 4),
                Scale = json.OptionalNumber("scale", 1),
                Priority = json.OptionalNumber("priority", 1)
            };
        }
    }
}
