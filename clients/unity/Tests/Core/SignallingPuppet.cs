using System;
using System.Globalization;
using System.Text;
using System.Threading;
using Volsfu.Signalling;

namespace Volsfu.Tests
{
    /// <summary>A SignallingClient that executes commands from its standard input, and prints the events.</summary>
    static class SignallingPuppet
    {
        internal static int Run(string[] args)
        {
            var settings = new JoinSettings { Server = args[1], Room = args[2], Identity = args[3], Token = args[4], Receive = args[5] == "receive" || args[5] == "both", MakeBeforeBreak = args[5] == "both" };
            if (args.Length > 6)
            {
                settings.Publications.Add(Body(args[6], 2, 3));
            }
            var client = new SignallingClient(settings);
            var reading = new Thread(() => Read(client)) { IsBackground = true };
            reading.Start();
            for (;;)
            {
                SignallingEvent e;
                while (client.TryTakeEvent(out e))
                {
                    Say(Line(e));
                    if (e is Ended)
                    {
                        client.Dispose();
                        return 0;
                    }
                }
                Thread.Sleep(2);
            }
        }

        static Publication Body(string name, int tiles, int qualities)
        {
            var body = new Publication { Name = name, FrameRate = 30 };
            for (int i = 0; i < tiles; i++)
            {
                body.Tiles.Add(new Tile { Label = "tile " + i, Min = new[] { -0.5, i, -0.25 }, Max = new[] { 0.5, i + 1, 0.25 } });
            }
            for (int i = 0; i < qualities; i++)
            {
                body.Qualities.Add(new QualityInfo { Name = "q" + i, Bitrate = 1000000 * (i + 1) });
            }
            return body;
        }

        static void Read(SignallingClient client)
        {
            for (string line = Console.ReadLine(); line != null; line = Console.ReadLine())
            {
                string[] words = line.Split(' ');
                try
                {
                    Do(client, words);
                }
                catch (ProtocolException e)
                {
                    Say("refused " + words[0] + " " + e.Message);
                }
            }
            client.Dispose();
        }

        static void Do(SignallingClient client, string[] words)
        {
            switch (words[0])
            {
                case "choose":
                    int quality = Number(words[4]);
                    Say("asked " + client.SetQuality(quality == -2 ? new Choice { Participant = words[1], Publication = words[2], Tile = Number(words[3]) }
                        : Choice.Of(words[1], words[2], Number(words[3]), quality)));
                    break;
                case "limits": Say("asked " + client.SetLimits(Number(words[1]), Number(words[2]))); break;
                case "publish": Say("asked " + client.Publish(Body(words[1], Number(words[2]), Number(words[3])))); break;
                case "unpublish": Say("asked " + client.Unpublish(words[1])); break;
                case "viewpoint": client.SetViewpoint(new Viewpoint { Position = new[] { Decimal(words[1]), Decimal(words[2]), Decimal(words[3]) }, FieldOfView = 60, Aspect = 1.5 }); break;
                case "pose": client.SetPose(words[1], new ObjectPose { Position = new[] { Decimal(words[2]), 0, 0 }, Scale = 2 }); break;
                case "answer": client.Answer(new OfferReceived { Offer = Number(words[1]), Connection = Number(words[3]) }, Text(words[2])); break;
                case "candidate": client.AddCandidate(Number(words[4]), Text(words[1]), Text(words[2]), Number(words[3])); break;
                case "leaveformer": client.LeaveFormer(); break;
                case "time": Say("time " + client.ServerTime()); break;
                case "participants": Say("participants " + Company(client)); break;
                case "leave": client.Dispose(); break;
            }
        }

        static string Company(SignallingClient client)
        {
            var line = new StringBuilder();
            foreach (Participant participant in client.Participants())
            {
                line.Append(participant.Identity).Append('=');
                foreach (Publication publication in participant.Publications.Values)
                {
                    line.Append(Describe(publication)).Append(',');
                }
                line.Append(' ');
            }
            return line.ToString().Trim();
        }

        static string Describe(Publication p)
        {
            return p.Name + ":" + p.Codec.MimeType + ":" + p.Tiles.Count + "x" + p.Qualities.Count + ":" + p.Tiles[p.Tiles.Count - 1].Max[1].ToString(CultureInfo.InvariantCulture);
        }

        static string Line(SignallingEvent e)
        {
            var j = e as Joined;
            if (j != null)
            {
                return "joined " + j.Room + " " + j.Identity + " " + (j.Resumed ? "resumed" : "new") + (j.Former > 0 ? " beside " + j.Former : "");
            }
            var m = e as Moved;
            if (m != null)
            {
                return "moved " + m.Server;
            }
            var former = e as FormerEnded;
            if (former != null)
            {
                return "over " + former.Connection;
            }
            var i = e as Interrupted;
            if (i != null)
            {
                return "interrupted " + i.RetryMilliseconds + " " + i.Reason;
            }
            var end = e as Ended;
            if (end != null)
            {
                return "ended " + (end.Code == "" ? "left" : end.Code);
            }
            var done = e as RequestDone;
            if (done != null)
            {
                return "done " + done.Id;
            }
            var failed = e as RequestFailed;
            if (failed != null)
            {
                return "failed " + (failed.Id == "" ? "-" : failed.Id) + " " + failed.Code;
            }
            var closing = e as Closing;
            if (closing != null)
            {
                return "closing " + closing.Code;
            }
            var unreadable = e as Unreadable;
            if (unreadable != null)
            {
                return "unreadable " + unreadable.Problem;
            }
            return RoomLine(e) ?? MediaLine(e) ?? "unknown " + e.GetType().Name;
        }

        static string RoomLine(SignallingEvent e)
        {
            var came = e as ParticipantJoined;
            if (came != null)
            {
                return "came " + came.Participant.Identity;
            }
            var left = e as ParticipantLeft;
            if (left != null)
            {
                return "left " + left.Identity;
            }
            var published = e as Published;
            if (published != null)
            {
                return "published " + published.Participant + " " + Describe(published.Publication);
            }
            var unpublished = e as Unpublished;
            if (unpublished != null)
            {
                return "unpublished " + unpublished.Participant + " " + unpublished.Publication;
            }
            var pose = e as PoseChanged;
            if (pose != null)
            {
                return "pose " + pose.Participant + " " + pose.Publication + " " + pose.Pose.Position[0].ToString(CultureInfo.InvariantCulture);
            }
            return null;
        }

        static string MediaLine(SignallingEvent e)
        {
            var offer = e as OfferReceived;
            if (offer != null)
            {
                return "offer " + offer.Offer + " " + offer.Media.Count + " " + Code(offer.Sdp) + " " + offer.Connection;
            }
            var candidate = e as CandidateReceived;
            if (candidate != null)
            {
                return "candidate " + Code(candidate.Candidate) + " " + Code(candidate.Mid) + " " + candidate.LineIndex + " " + candidate.Connection;
            }
            var assignments = e as AssignmentsChanged;
            if (assignments != null)
            {
                return "assigned " + assignments.Assignments.Count;
            }
            var sending = e as Sending;
            if (sending != null)
            {
                return "sending " + sending.Participant + " " + sending.Publication + " " + sending.Tile + " " + sending.Quality + " " + sending.Reason;
            }
            var bandwidth = e as Bandwidth;
            if (bandwidth != null)
            {
                return "bandwidth " + bandwidth.Estimate;
            }
            return null;
        }

        static int Number(string word) { return int.Parse(word, CultureInfo.InvariantCulture); }

        static double Decimal(string word) { return double.Parse(word, CultureInfo.InvariantCulture); }

        // Texts are encoded with a dot before their code, so that an empty one is also a word.
        static string Code(string text) { return "." + Convert.ToBase64String(Encoding.UTF8.GetBytes(text)); }

        static string Text(string word) { return Encoding.UTF8.GetString(Convert.FromBase64String(word.Substring(1))); }

        internal static void Say(string line)
        {
            lock (Console.Out)
            {
                Console.Out.WriteLine(line);
                Console.Out.Flush();
            }
        }
    }
}
