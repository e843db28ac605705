using System;
using System.Collections.Generic;
using System.IO;
using Newtonsoft.Json.Linq;
using Volsfu.Signalling;

namespace Volsfu.Tests
{
    /// <summary>Drives the websocket of a session, for tests that have no other.</summary>
    static class Driving
    {
        internal static bool TakeConnect(this SignallingSession session, long now) { return session.TakeLink(now) != null; }

        internal static void Opened(this SignallingSession session, long now) { session.Opened(session.Present, now); }

        internal static void Received(this SignallingSession session, string text, long now) { session.Received(session.Present, text, now); }

        internal static void Broke(this SignallingSession session, string code, string reason, long now) { session.Broke(session.Present, code, reason, now); }

        internal static bool Step(this SignallingSession session, long now) { return session.Step(session.Present, now); }

        internal static string NextOutgoing(this SignallingSession session) { return session.Present == null ? null : session.Present.NextOutgoing(); }
    }

    /// <summary>Tests a SignallingSession with a simulated server and clock.</summary>
    static class SessionTests
    {
        const long second = 1000000;

        /// <summary>The path of pkg/client/testdata/failover.json.</summary>
        internal static string Transcripts = "";

        static string Joined(string id, string secret, bool resumed)
        {
            return "{\"type\":\"joined\",\"id\":\"" + id + "\",\"version\":1,\"room\":\"lab\",\"identity\":\"ada\",\"session\":\"S\"," + (resumed ? "\"resumed\":true," : "") +
                "\"resume\":{\"secret\":\"" + secret + "\",\"grace_ms\":15000},\"ice_servers\":[{\"urls\":[\"stun:a\"]}],\"participants\":[" + Grace + "],\"limits\":{}}";
        }

        const string Grace = "{\"identity\":\"grace\",\"publications\":[" + Body + "]}";
        const string Body = "{\"name\":\"body\",\"kind\":\"video\",\"mode\":\"alternatives\",\"codec\":{\"mime_type\":\"video/volumetric\",\"clock_rate\":90000}," +
            "\"frame_rate\":30,\"vr2gather\":true,\"later\":[1],\"tiles\":[{\"box\":{\"min\":[-0.5,0,0],\"max\":[0.5,1.8,1]}}],\"qualities\":[{\"name\":\"low\",\"bitrate_bps\":8}]}";

        static SignallingSession Start()
        {
            var session = new SignallingSession(new JoinSettings { Room = "lab", Identity = "ada", Receive = true, StartBitrate = 7 });
            Check.True(session.TakeConnect(0), "wants a websocket");
            Check.True(!session.TakeConnect(0), "wants one only");
            session.Opened(0);
            return session;
        }

        internal static SignallingSession Join()
        {
            SignallingSession session = Start();
            JToken join = Next(session, "join");
            Check.Equal(7L, join.Integer("start_bps", 0, 9), "start rate");
            session.Received(Joined(Id(join), "first", false), 0);
            Event<Joined>(session);
            return session;
        }

        static JToken Next(SignallingSession session, string type)
        {
            string text = session.NextOutgoing();
            Check.True(text != null, "nothing is sent, want " + type);
            JToken json = JsonReading.Parse(text);
            Check.Equal(type, json.Text("type", 50), "message");
            return json;
        }

        static string Id(JToken json) { return json.OptionalText("id", 128); }

        static T Event<T>(SignallingSession session) where T : SignallingEvent
        {
            SignallingEvent e = session.NextEvent();
            Check.True(e is T, "event: got " + (e == null ? "none" : e.GetType().Name) + ", want " + typeof(T).Name);
            return (T)e;
        }

        public static void JoiningTellsTheRoom()
        {
            SignallingSession session = Start();
            JToken join = Next(session, "join");
            Check.Equal("lab/ada", join.Text("room", 9) + "/" + join.Text("identity", 9), "room and identity");
            Check.True(join.Flag("receive") && join.Find("resume") == null && join.List("publications", 0).Count == 0, "join");
            session.Received(Joined(Id(join), "first", false), 0);
            Check.Equal("stun:a", Event<Joined>(session).IceServers[0].Urls[0], "ICE server");
            Publication body = session.Participants()[0].Publications["body"];
            Check.True(body.VR2Gather && !body.Audio && !body.Descriptions && body.Tiles[0].Max[1] == 1.8 && body.Qualities[0].Bitrate == 8, "publication");
            session.Received("{\"type\":\"participant_joined\",\"participant\":{\"identity\":\"linus\",\"publications\":[]}}", 0);
            Check.Equal("linus", Event<ParticipantJoined>(session).Participant.Identity, "who came");
            session.Received("{\"type\":\"published\",\"participant\":\"linus\",\"publication\":" + Body + "}", 0);
            Check.Equal("body", Event<Published>(session).Publication.Name, "what is published");
            Check.Equal(2, session.Participants().Count, "participants");
            session.Received("{\"type\":\"unpublished\",\"participant\":\"linus\",\"publication\":\"body\"}", 0);
            Event<Unpublished>(session);
            session.Received("{\"type\":\"participant_left\",\"identity\":\"grace\",\"reason\":\"left\"}", 0);
            Event<ParticipantLeft>(session);
            Check.Equal(0, session.Participants()[0].Publications.Count, "publications of who is left");
        }

        public static void AssignmentsAreAcknowledgedAndSendingIsTold()
        {
            SignallingSession session = Join();
            session.Received("{\"type\":\"offer\",\"offer\":1,\"sdp\":\"v=0\",\"media\":[{\"mid\":\"4\",\"role\":\"slot\"}]}", 0);
            Check.Equal("slot", Event<OfferReceived>(session).Media[0].Role, "role");
            session.Answer(new OfferReceived { Connection = 1, Offer = 1 }, "v=0 answer");
            Check.Equal(1L, Next(session, "answer").Integer("offer", 0, 9), "answered offer");
            const string track = "\"track\":{\"participant\":\"grace\",\"publication\":\"body\",\"tile\":0}";
            session.Received("{\"type\":\"assignments\",\"assignments\":[{\"mid\":\"4\",\"generation\":2," + track + "},{\"mid\":\"5\",\"generation\":1}]}", 0);
            JToken slot = Next(session, "acknowledge").List("slots", 1)[0];
            Check.Equal("4/2", slot.Text("mid", 9) + "/" + slot.Integer("generation", 0, 9), "acknowledged slot");
            Check.Equal(2, Event<AssignmentsChanged>(session).Assignments.Count, "assignments");
            session.Received("{\"type\":\"assignments\",\"assignments\":[{\"mid\":\"4\",\"generation\":1," + track + "}]}", 0);
            Check.True(session.NextOutgoing() == null && session.NextEvent() == null, "an older assignment is passed over");
            session.Received("{\"type\":\"sending\",\"slots\":[{\"mid\":\"4\",\"generation\":1,\"quality\":0,\"reason\":\"auto\"}," +
                "{\"mid\":\"4\",\"generation\":2,\"quality\":1,\"reason\":\"choice\",\"delay_us\":7},{\"mid\":\"5\",\"generation\":1,\"quality\":0,\"reason\":\"auto\"}]}", 0);
            Sending sending = Event<Sending>(session);
            Check.Equal("grace/body/0 1 choice 7", sending.Participant + "/" + sending.Publication + "/" + sending.Tile + " " + sending.Quality + " " + sending.Reason + " " +
                sending.DelayMicroseconds, "sending");
            Check.True(session.NextEvent() == null, "what is about older assignments or idle slots is passed over");
        }

        public static void RequestsAreAnswered()
        {
            SignallingSession session = Join();
            string id = session.SetQuality(new[] { Choice.Of("grace", "body", 0, -1), Choice.Of("grace", "body", -1, 1), new Choice { Participant = "a", Publication = "b" } });
            JToken choices = Next(session, "set_quality");
            Check.Equal(id, Id(choices), "id");
            Check.Equal(-1L, choices.List("choices", 3)[0].Integer("quality", -1, 9), "off");
            Check.True(choices.List("choices", 3)[1].Find("tile") == null, "all tiles");
            Check.Equal("auto", choices.List("choices", 3)[2].Text("quality", 9), "left to the server");
            session.Received("{\"type\":\"error\",\"id\":\"" + id + "\",\"code\":\"not_found\",\"message\":\"no\"}", 0);
            Check.Equal("not_found", Event<RequestFailed>(session).Code, "code");
            id = session.SetLimits(5, 0);
            JToken limits = Next(session, "limits");
            Check.Equal(5L, limits.Integer("max_bps", 0, 9), "limit");
            Check.Equal(5L, limits.Integer("start_bps", 0, 9), "the start rate, which keeps to the limit");
            session.Received("{\"type\":\"ok\",\"id\":\"" + id + "\"}", 0);
            Check.Equal(id, Event<RequestDone>(session).Id, "done");
            session.Received("{\"type\":\"ok\",\"id\":\"" + id + "\"}", 0);
            Check.True(session.NextEvent() == null, "an answer that nothing waits for is passed over");
            Check.Refuses(() => session.SetQuality(new[] { Choice.Of("grace", "", 0, 1) }), "a choice without a publication");
            Check.Refuses(() => session.SetQuality(new[] { Choice.Of("grace", "body", 256, 1) }), "a tile that no publication has");
            foreach (string name in new[] { ".", "..", "a\nb", "\u009b31m" })
            {
                Check.Refuses(() => session.SetQuality(new[] { Choice.Of("grace", name, 0, 1) }), "a name that the server refuses");
            }
            Check.Refuses(() => session.Publish(new Publication { Name = "empty" }), "a publication without tiles");
            Check.Refuses(() => new SignallingSession(new JoinSettings { MaxBitrate = 1, StartBitrate = 2 }), "a start rate above the largest");
            Check.Refuses(() => session.SetViewpoint(new Viewpoint { FieldOfView = 171 }), "a field of view of 171 degrees");
            Check.Refuses(() => session.SetViewpoint(new Viewpoint { Position = new[] { 0, double.NaN, 0 } }), "a place that is none");
        }

        public static void ViewpointsAreSentAtMostSixtyTimesPerSecond()
        {
            SignallingSession session = Join();
            int sent = 0;
            for (long now = second; now < 2 * second; now += 5000)
            {
                session.SetViewpoint(new Viewpoint { Position = new[] { now / (double)second, 1.6, 0 } });
                session.SetPose("own", new ObjectPose());
                Check.True(session.Step(now), "the server counts as alive");
                for (string text = session.NextOutgoing(); text != null; text = session.NextOutgoing())
                {
                    sent += text.Contains("viewpoint") ? 1 : 0;
                }
            }
            Check.True(sent >= 45 && sent <= 60, sent + " viewpoints in a second");
        }

        public static void ABrokenWebsocketIsResumed()
        {
            SignallingSession session = Join();
            session.SetQuality(new[] { Choice.Of("grace", "body", 0, 1) });
            Next(session, "set_quality");
            session.Broke("", "the network broke", 0);
            Check.Equal("interrupted", Event<RequestFailed>(session).Code, "the request without a reply");
            Check.Equal(250L, Event<Interrupted>(session).RetryMilliseconds, "wait");
            Check.True(!session.TakeConnect(249999) && session.TakeConnect(250000), "connects again after the wait");
            session.Opened(second);
            JToken resume = Next(session, "join").Object("resume");
            Check.Equal("S/first", resume.Text("session", 9) + "/" + resume.Text("secret", 9), "session and secret");
            session.Received(Joined("r3", "second", true), second);
            Check.True(Event<Joined>(session).Resumed, "resumed");
            Check.Equal(1L, Next(session, "set_quality").List("choices", 1)[0].Integer("quality", 0, 9), "the choice that may not have arrived");
            session.Broke("", "again", second);
            Event<Interrupted>(session);
            Check.Equal("", session.SetLimits(7, 0), "a request while the websocket is broken");
            session.TakeConnect(2 * second);
            session.Opened(2 * second);
            Next(session, "join");
            session.Received(Joined("r5", "third", true), 2 * second);
            Event<Joined>(session);
            Check.Equal(7L, Next(session, "limits").Integer("max_bps", 0, 9), "what was asked for meanwhile");
            Check.True(session.NextOutgoing() == null, "the server has kept the choices");
            session.Broke("", "and again", 2 * second);
            Event<Interrupted>(session);
            session.TakeConnect(3 * second);
            session.Opened(3 * second);
            JToken over = Next(session, "join");
            Check.Equal("third", over.Object("resume").Text("secret", 9), "each secret is good for one use");
            session.Received("{\"type\":\"error\",\"id\":\"" + Id(over) + "\",\"code\":\"resume\",\"message\":\"over\"}", 3 * second);
            JToken again = Next(session, "join");
            Check.True(again.Find("resume") == null, "joins again on the same websocket");
            session.Received(Joined(Id(again), "fourth", false), 3 * second);
            Check.True(!Event<Joined>(session).Resumed, "a new session");
            Check.Equal(1L, Next(session, "set_quality").List("choices", 1)[0].Integer("quality", 0, 9), "the choice is made again");
        }

        public static void AnotherServerIsToldTheStateThatIsLost()
        {
            SignallingSession session = Join();
            var body = new Publication { Name = "body", FrameRate = 30 };
            body.Tiles.Add(new Tile { Label = "whole", Min = new[] { 0.0, 0, 0 }, Max = new[] { 1.0, 1, 1 } });
            body.Qualities.Add(new QualityInfo { Name = "only", Bitrate = 1000000 });
            session.Publish(body);
            string id = Id(Next(session, "publish"));
            session.Received("{\"type\":\"ok\",\"id\":\"" + id + "\"}", 0);
            session.SetQuality(new[] { Choice.Of("grace", "body", 0, 1) });
            id = Id(Next(session, "set_quality"));
            session.Received("{\"type\":\"ok\",\"id\":\"" + id + "\"}", 0);
            session.SetViewpoint(new Viewpoint { Position = new[] { 0, 1.5, 0 } });
            session.SetPose("body", new ObjectPose { Position = new[] { 0, 0.5, 0 } });
            session.SetPose("gone", new ObjectPose());
            session.Unpublish("gone");
            session.Received("{\"type\":\"ok\",\"id\":\"" + Id(Next(session, "unpublish")) + "\"}", 0);
            session.Step(100000);
            Next(session, "viewpoint");
            Next(session, "pose");
            session.Broke("", "the server died", 0);
            session.TakeConnect(second);
            session.Opened(second);
            string joined = Joined(Id(Next(session, "join")), "second", true);
            session.Received(joined.Insert(1, "\"restored\":false,"), second);
            Check.Equal("body", Next(session, "publish").Object("publication").Text("name", 9), "the publication");
            Check.Equal(1L, Next(session, "set_quality").List("choices", 1)[0].Integer("quality", 0, 9), "the choice");
            session.Step(second + 100000);
            Check.Equal(1.5, Next(session, "viewpoint").Numbers("position", 3)[1], "the viewpoint");
            Check.Equal(0.5, Next(session, "pose").Numbers("position", 3)[1], "the pose");
            Check.True(session.NextOutgoing() == null, "nothing else");
        }

        const string moved = "{\"type\":\"moved\",\"url\":\"wss://b.example\",\"ticket\":\"T\"";

        public static void AJoinMovesWithATicket()
        {
            SignallingSession session = Start();
            JToken join = Next(session, "join");
            Check.True(join.Flag("moves") && join.Find("ticket") == null, "a client that moves, without a ticket");
            session.Received(moved + ",\"id\":\"" + Id(join) + "\"}", 0);
            Check.Equal("wss://b.example", Event<Moved>(session).Server, "the other server");
            Check.True(session.Present == null && session.TakeConnect(0), "connects there at once");
            Check.Equal("wss://b.example", session.Server, "address");
            session.Opened(0);
            JToken there = Next(session, "join");
            Check.Equal("T", there.Text("ticket", 9), "ticket");
            Check.True(there.Find("resume") == null, "a new session");
            session.Broke("", "not reachable", 0);
            Event<RequestFailed>(session);
            Event<Interrupted>(session);
            Check.Equal("ws://127.0.0.1:8080", session.Server, "the first server");
            Check.True(session.TakeConnect(second), "tries again");
            session.Opened(second);
            Check.True(Next(session, "join").Find("ticket") == null, "without the ticket");
        }

        public static void ASessionMovesWithANewConnection()
        {
            SignallingSession session = Join();
            string id = session.SetQuality(new[] { Choice.Of("grace", "body", 0, 1) });
            session.Received(moved + ",\"deadline_ms\":20000}", 0);
            RequestFailed failed = Event<RequestFailed>(session);
            Check.Equal(id, failed.Id, "the request without a reply");
            Check.Equal("the session moved to another server before the reply", failed.Message, "the reason");
            Event<Moved>(session);
            Check.True(session.NextOutgoing() == null && session.TakeConnect(0), "connects at once, and leaves nothing");
            session.Opened(0);
            JToken resume = Next(session, "join").Object("resume");
            Check.Equal("S/T", resume.Text("session", 9) + "/" + resume.Text("secret", 9), "the ticket as the secret");
            Check.True(resume.Flag("new_connection"), "a new connection");
            session.Received(Joined("r3", "second", true), 0);
            Check.True(Event<Joined>(session).NewConnection, "the program is told");
            Next(session, "set_quality");
            session.Broke("", "the network broke", 0);
            Event<Interrupted>(session);
            Check.Equal("wss://b.example", session.Server, "the server of the session");
            session.TakeConnect(second);
            session.Opened(second);
            resume = Next(session, "join").Object("resume");
            Check.True(resume.Text("secret", 9) == "second" && !resume.Flag("new_connection"), "the own secret and connection");
        }

        /// <summary>Joins with two peer connections, and gets the message to move with both.</summary>
        static SignallingSession JoinForTwo(bool receive = true)
        {
            var session = new SignallingSession(new JoinSettings { Room = "lab", Identity = "ada", Receive = receive, MakeBeforeBreak = true, MaxBitrate = 6 });
            session.TakeLink(0);
            session.Opened(0);
            session.Received(Joined(Id(Next(session, "join")), "first", false), 0);
            Joined joined = Event<Joined>(session);
            Check.Equal("1 0", joined.Connection + " " + joined.Former, "connections");
            return session;
        }

        /// <summary>Opens the second websocket of a move, and returns it with its join.</summary>
        static SignallingLink Make(SignallingSession session, string server, string ticket, out JToken join)
        {
            SignallingLink link = session.TakeLink(0);
            Check.True(link != null && session.TakeLink(0) == null, "opens one websocket");
            Check.Equal(server, link.Server, "server");
            session.Opened(link, 0);
            join = JsonReading.Parse(link.NextOutgoing());
            JToken resume = join.Object("resume");
            Check.Equal("S/" + ticket, resume.Text("session", 9) + "/" + resume.Text("secret", 9), "the ticket as the secret");
            Check.True(resume.Flag("new_connection"), "a new connection");
            return link;
        }

        const string twice = ",\"deadline_ms\":20000,\"make_before_break\":true}";

        public static void AMoveHasTwoConnections()
        {
            SignallingSession session = JoinForTwo();
            session.Received("{\"type\":\"bandwidth\",\"estimate_bps\":8,\"allocated_bps\":1,\"wanted_bps\":1}", 0);
            Event<Bandwidth>(session);
            string id = session.SetLimits(5, 0);
            session.Received(moved + twice, 0);
            JToken join;
            SignallingLink first = session.Present, next = Make(session, "wss://b.example", "T", out join);
            Check.Equal(6L, join.Integer("start_bps", 0, 9), "the estimate within the limit of the join");
            Check.True(session.Present == first && session.IsJoined && session.NextEvent() == null, "the session stays meanwhile");
            session.Received(next, Joined(Id(join), "second", true), 0);
            Event<Moved>(session);
            Joined joined = Event<Joined>(session);
            Check.Equal("2 1 True", joined.Connection + " " + joined.Former + " " + joined.NewConnection, "connections");
            Check.True(session.Present == next && session.Uses(first), "both websockets are used");
            Next(session, "limits");

            const string track = "\"track\":{\"participant\":\"grace\",\"publication\":\"body\",\"tile\":0}";
            foreach (SignallingLink link in new[] { first, next })
            {
                int connection = link == first ? 1 : 2;
                while (link.NextOutgoing() != null) { }
                session.Received(link, "{\"type\":\"offer\",\"offer\":7,\"sdp\":\"v=0\",\"media\":[]}", 0);
                OfferReceived offer = Event<OfferReceived>(session);
                Check.Equal(connection, offer.Connection, "connection of the offer");
                session.Answer(offer, "v=0 answer");
                Check.Equal("answer", JsonReading.Parse(link.NextOutgoing()).Text("type", 9), "the answer to the same server");
                session.AddCandidate(connection, "", "", 0);
                Check.Equal("candidate", JsonReading.Parse(link.NextOutgoing()).Text("type", 9), "the candidate to the same server");
                session.Received(link, "{\"type\":\"candidate\",\"candidate\":\"\"}", 0);
                Check.Equal(connection, Event<CandidateReceived>(session).Connection, "connection of the candidate");
                session.Received(link, "{\"type\":\"assignments\",\"assignments\":[{\"mid\":\"4\",\"generation\":" + connection + "," + track + "}]}", 0);
                Check.Equal(connection, Event<AssignmentsChanged>(session).Connection, "connection of the assignments");
                Check.Equal("acknowledge", JsonReading.Parse(link.NextOutgoing()).Text("type", 20), "the acknowledgement to the same server");
                session.Received(link, "{\"type\":\"sending\",\"slots\":[{\"mid\":\"4\",\"generation\":" + connection + ",\"quality\":0,\"reason\":\"auto\"}]}", 0);
                Check.Equal(connection, Event<Sending>(session).Connection, "connection of what is sent");
            }
            session.Received(first, "{\"type\":\"closing\",\"code\":\"replaced\",\"message\":\"no\"}", 0);
            session.Received(first, "{\"type\":\"participant_left\",\"identity\":\"grace\",\"reason\":\"left\"}", 0);
            Check.True(session.NextEvent() == null, "the room is that of the other server");
            session.Received(first, "{\"type\":\"ok\",\"id\":\"" + id + "\"}", 0);
            Check.Equal(id, Event<RequestDone>(session).Id, "the former server replies to a former request");
            session.LeaveFormer();
            Check.Equal(1, Event<FormerEnded>(session).Connection, "the former connection");
            Check.True(!session.Uses(first) && session.Uses(next), "one websocket is left");
            session.Broke(first, "", "closed", 0);
            session.AddCandidate(1, "", "", 0);
            Check.True(session.NextOutgoing() == null && session.NextEvent() == null && session.IsJoined, "the former connection has no websocket");
        }

        public static void AFormerConnectionEndsInTime()
        {
            SignallingSession session = JoinForTwo();
            session.Received(moved + twice, 0);
            JToken join;
            SignallingLink next = Make(session, "wss://b.example", "T", out join);
            string id = session.SetLimits(5, 0);
            session.Received(next, Joined(Id(join), "second", true), 0);
            Event<Moved>(session);
            Event<Joined>(session);
            session.Received("{\"type\":\"nodes\"," + nodes + "}", 0);
            session.MediaArrived(19 * second);
            session.Received("{\"type\":\"later\"}", 19 * second);
            session.Step(20 * second - 1);
            Check.True(session.NextEvent() == null, "the former server has time");
            session.Step(20 * second);
            Check.Equal(id, Event<RequestFailed>(session).Id, "the request without a reply");
            Event<FormerEnded>(session);
        }

        public static void AProgramWithOneConnectionLeavesAtOnce()
        {
            foreach (bool receive in new[] { false, true })
            {
                SignallingSession session = receive ? Join() : JoinForTwo(false);
                string id = session.SetQuality(new[] { Choice.Of("grace", "body", 0, 1) });
                session.Received(moved + twice, 0);
                JToken join;
                SignallingLink first = session.Present, next = Make(session, "wss://b.example", "T", out join);
                session.Received(next, Joined(Id(join), "second", true), 0);
                Check.Equal(id, Event<RequestFailed>(session).Id, "the request without a reply");
                Event<Moved>(session);
                Joined joined = Event<Joined>(session);
                Check.True(joined.NewConnection && joined.Former == 0 && !session.Uses(first), "no former connection");
                Check.Equal(1L, Next(session, "set_quality").List("choices", 1)[0].Integer("quality", 0, 9), "the choice is made again");
            }
        }

        public static void AMoveThatFailsInterruptsTheSession()
        {
            for (int way = 0; way < 4; way++)
            {
                SignallingSession session = JoinForTwo();
                SignallingLink first = session.Present;
                session.Received(moved + twice, 0);
                JToken join;
                SignallingLink next = Make(session, "wss://b.example", "T", out join);
                switch (way)
                {
                    case 0: session.Broke(next, "", "not reachable", 0); break;
                    case 1: session.Received(next, "{\"type\":\"error\",\"id\":\"" + Id(join) + "\",\"code\":\"resume\",\"message\":\"no\"}", 0); break;
                    case 2: session.Step(next, 10 * second); break;
                    default:
                        for (int i = 0; i < 9; i++)
                        {
                            session.Received(next, "{\"type\":\"moved\",\"url\":\"wss://c.example\",\"ticket\":\"U" + i + "\"}", 0);
                            next = i < 8 ? Make(session, "wss://c.example", "U" + i, out join) : next;
                        }
                        break;
                }
                Check.Equal("wss://b.example", Event<Moved>(session).Server, "way " + way);
                Check.True(!session.Uses(first) && !session.Uses(next), "both websockets are closed");
                Check.True(session.TakeConnect(10 * second), "connects at once");
                session.Opened(10 * second);
                Check.Equal("T", Next(session, "join").Object("resume").Text("secret", 9), "the ticket of the message");
            }
        }

        public static void AWebsocketThatEndsDuringAMoveIsNotMissed()
        {
            SignallingSession session = JoinForTwo();
            SignallingLink first = session.Present;
            session.Received(moved + twice, 0);
            JToken join;
            SignallingLink next = Make(session, "wss://b.example", "T", out join);
            session.Received(first, "{\"type\":\"closing\",\"code\":\"replaced\",\"message\":\"no\"}", 0);
            session.Broke(first, "replaced", "the server closed the websocket", 0);
            Check.True(session.NextEvent() == null && session.TakeLink(60 * second) == null, "the other server has the session");
            Check.Equal("", session.SetLimits(7, 0), "a request meanwhile");
            session.Received(next, Joined(Id(join), "second", true), 0);
            Event<Moved>(session);
            Check.Equal(1, Event<Joined>(session).Former, "the peer connection to the former server may still have media");
            Check.Equal(7L, JsonReading.Parse(next.NextOutgoing()).Integer("max_bps", 0, 9), "what was asked for meanwhile");

            SignallingSession failed = JoinForTwo();
            failed.Received(moved + twice, 0);
            next = Make(failed, "wss://b.example", "T", out join);
            failed.Broke("", "the network broke", 0);
            failed.Broke(next, "", "not reachable", 0);
            Event<Moved>(failed);
            Check.True(failed.TakeConnect(0) && failed.Server == "wss://b.example", "goes there in the other way");
        }

        public static void ASilentServerIsLeftDuringAMove()
        {
            SignallingSession session = JoinForTwo();
            session.Received("{\"type\":\"nodes\"," + nodes + "}", 0);
            session.Received(moved + twice, 0);
            JToken join;
            SignallingLink next = Make(session, "wss://b.example", "T", out join);
            ExpectQuestion(session, 5 * second / 2, second);
            session.Broke("", "the server does not answer", 4 * second);
            Event<Interrupted>(session);
            Check.True(!session.Uses(next), "the attempt is over");
            Check.True(session.TakeConnect(4 * second), "connects");
            Check.Equal("ws://b:1", session.Server, "the next server");
        }

        public static void AnotherMoveReplacesTheAttempt()
        {
            SignallingSession session = JoinForTwo();
            session.Received(moved + twice, 0);
            JToken join;
            SignallingLink abandoned = Make(session, "wss://b.example", "T", out join);
            session.Received("{\"type\":\"moved\",\"url\":\"wss://c.example\",\"ticket\":\"U\",\"make_before_break\":true}", 0);
            Check.True(!session.Uses(abandoned), "the attempt is over");
            SignallingLink next = Make(session, "wss://c.example", "U", out join);
            session.Received(next, Joined(Id(join), "second", true), 0);
            Event<Moved>(session);
            Event<Joined>(session);
            session.Received(moved + twice, 0);
            SignallingLink third = Make(session, "wss://b.example", "T", out join);
            session.Received(third, Joined(Id(join), "third", true), 0);
            Check.Equal(1, Event<FormerEnded>(session).Connection, "the first connection ends with the second move");
            Event<Moved>(session);
            Check.Equal(2, Event<Joined>(session).Former, "the former connection");
            session.Leave();
            session.Received("{\"type\":\"ok\",\"id\":\"" + Id(Next(session, "leave")) + "\"}", 0);
            Event<Ended>(session);
            Check.True(!session.Uses(next) && !session.Uses(third), "no websocket is left");
        }

        public static void AFailedMoveResumesWithTheSecret()
        {
            SignallingSession session = Join();
            session.Received(moved + "}", 0);
            Event<Moved>(session);
            session.TakeConnect(0);
            session.Opened(0);
            Check.True(Next(session, "join").Object("resume").Flag("new_connection"), "a new connection at the other server");
            session.Broke("", "not reachable", 0);
            Event<RequestFailed>(session);
            Event<Interrupted>(session);
            Check.True(session.TakeConnect(0), "asks the former server at once");
            session.Opened(second);
            JToken join = Next(session, "join");
            Check.Equal("first", join.Object("resume").Text("secret", 9), "the own secret");
            Check.True(!join.Object("resume").Flag("new_connection"), "the former server has the connection");
            Check.Equal("ws://127.0.0.1:8080", session.Server, "the former server");
            for (int i = 0; i < 8; i++)
            {
                session.Received(moved + ",\"id\":\"" + Id(join) + "\"}", second);
                Event<Moved>(session);
                Check.True(session.TakeConnect(second), "connects");
                session.Opened(second);
                join = Next(session, "join");
                Check.Equal("T", join.Object("resume").Text("secret", 9), "the ticket as the secret");
                Check.True(!join.Object("resume").Flag("new_connection"), "the same request");
            }
            session.Received(moved + ",\"id\":\"" + Id(join) + "\"}", second);
            Event<RequestFailed>(session);
            Event<Interrupted>(session);
            Check.Equal("ws://127.0.0.1:8080", session.Server, "no ninth move in succession");
        }

        const string home = "ws://127.0.0.1:8080";
        const string nodes = "\"nodes\":[{\"url\":\"ws://b:1\",\"region\":\"eu\"},{\"url\":\"ws://c:1\"}]";

        public static void ABadAddressIsUnreadable()
        {
            SignallingSession session = Join();
            session.Received("{\"type\":\"moved\",\"url\":\"http://b\",\"ticket\":\"T\"}", 0);
            Event<Unreadable>(session);
            Check.True(session.IsJoined, "the session stays");
        }

        /// <summary>
        /// Breaks the websocket, and expects an attempt on each server with a wait before it in milliseconds, and with
        /// or without a new peer connection. Every attempt fails.
        /// </summary>
        static void Attempts(SignallingSession session, long now, params string[] attempts)
        {
            session.Broke("", "the server died", now);
            foreach (string attempt in attempts)
            {
                SignallingEvent e = session.NextEvent();
                e = e is RequestFailed ? session.NextEvent() : e;
                long wait = ((Interrupted)e).RetryMilliseconds;
                now += wait * 1000;
                Check.True(session.TakeConnect(now), "connects");
                session.Opened(now);
                bool renews = Next(session, "join").Object("resume").Flag("new_connection");
                Check.Equal(attempt, session.Server + " " + wait + (renews ? " new" : ""), "attempt");
                session.Broke("", "the server died", now);
            }
        }

        public static void OtherServersAreTriedInTurn()
        {
            SignallingSession session = Join();
            session.Received("{\"type\":\"nodes\"," + nodes + ",\"secret\":\"newer\"}", 0);
            Attempts(session, 0, home + " 0", "ws://b:1 0 new", "ws://c:1 0 new", home + " 250", "ws://b:1 0 new", "ws://c:1 0 new", home + " 500");
            session.TakeConnect(second);
            session.Opened(second);
            Check.Equal("newer", Next(session, "join").Object("resume").Text("secret", 9), "the newest secret");
        }

        public static void ASilentServerIsTriedLast()
        {
            SignallingSession session = Join();
            session.Received("{\"type\":\"nodes\"," + nodes + "}", 0);
            Check.True(!session.Step(16 * second), "the server is silent");
            Attempts(session, 16 * second, "ws://b:1 0 new", "ws://c:1 0 new", home + " 0", home + " 250");
        }

        public static void AttemptsAreShortIfThereAreOtherServers()
        {
            SignallingSession session = Join();
            Check.Equal(10000L, session.AttemptMilliseconds, "limit with one server");
            session.Received("{\"type\":\"nodes\"," + nodes + "}", 0);
            session.Received("{\"type\":\"time_reply\",\"t0_us\":0,\"t1_us\":5,\"t2_us\":5}", 600000);
            Check.Equal(4000L, session.AttemptMilliseconds, "limit for a round trip of 600 ms");
            session.Broke("", "the server died", second);
            session.TakeConnect(second);
            session.Opened(second);
            Check.True(session.Step(5 * second), "the server has time");
            Check.True(!session.Step(5 * second + 1), "the time for the reply is over");
            for (int i = 0; i < 3; i++)
            {
                session.Broke("", "no reply", 5 * second);
                session.TakeConnect(6 * second);
            }
            Check.Equal(8000L, session.AttemptMilliseconds, "limit of the second round");
        }

        public static void AttemptsFollowTheTranscripts()
        {
            JArray attempts = JsonReading.Parse(File.ReadAllText(Transcripts)).List("attempts", 100);
            Check.True(attempts.Count > 0, "there are transcripts");
            foreach (JToken attempt in attempts)
            {
                SignallingSession session = Join();
                session.Received("{\"type\":\"nodes\"," + nodes + "}", 0);
                session.Received("{\"type\":\"time_reply\",\"t0_us\":0,\"t1_us\":5,\"t2_us\":5}", attempt.Integer("rtt_ms", 0, 10000) * 1000);
                Check.Equal(attempt.Integer("limit_ms", 0, 10000), session.AttemptMilliseconds, "limit");
            }
        }

        public static void RefusalsFollowTheTranscripts()
        {
            JArray rounds = JsonReading.Parse(File.ReadAllText(Transcripts)).List("rounds", 100);
            Check.True(rounds.Count > 0, "there are transcripts");
            foreach (JToken round in rounds)
            {
                string name = round.Text("name", 100);
                var refusals = new Refusals(round.Integer("servers", 1, 100) > 1);
                bool ended = false;
                foreach (JToken attempt in round.List("attempts", 100))
                {
                    ended = refusals.Add(attempt.OptionalText("code", 100), attempt.OptionalInteger("retry_after_ms", 0, int.MaxValue, 0)) || ended;
                }
                Check.Equal(round.Flag("ended"), ended || refusals.All, name + ": ended");
                Check.Equal(round.Integer("wait_ms", 0, int.MaxValue), refusals.Wait, name + ": wait");
            }
        }

        public static void SilenceFollowsTheTranscripts()
        {
            const long millisecond = 1000;
            JArray transcripts = JsonReading.Parse(File.ReadAllText(Transcripts)).List("silence", 100);
            Check.True(transcripts.Count > 0, "there are transcripts");
            foreach (JToken transcript in transcripts)
            {
                string name = transcript.Text("name", 100);
                var silence = new Silence();
                foreach (JToken step in transcript.List("steps", 100))
                {
                    if (step.Find("rtt") != null)
                    {
                        silence.Measured(step.Integer("rtt", 0, 100000) * millisecond);
                        continue;
                    }
                    if (step.Flag("returned"))
                    {
                        silence.Returned();
                        continue;
                    }
                    long at = step.Integer("at", 0, 1000000), received = step.Integer("received", 0, 1000000);
                    Silence.Verdict verdict = silence.Step(at * millisecond, received * millisecond, step.Flag("expected"), step.Flag("several"));
                    Check.Equal(step.Text("verdict", 10), verdict.ToString().ToLowerInvariant(), name + " at " + at);
                }
            }
        }

        /// <summary>Steps a session, and expects that it asks the server for a reply, and leaves the server after a while.</summary>
        static void ExpectQuestion(SignallingSession session, long at, long patience)
        {
            Check.True(session.Step(at), "the server has time for its reply");
            Next(session, "time");
            Check.True(session.Step(at + patience - 1), "the server still has time");
            Check.True(!session.Step(at + patience), "the server is silent");
            Check.True(session.Present.IsSilent, "no close frame is sent");
        }

        public static void AServerThatDoesNotReplyIsLeft()
        {
            SignallingSession quiet = Join();
            quiet.Received("{\"type\":\"nodes\"," + nodes + "}", 0);
            ExpectQuestion(quiet, 5 * second / 2, second);
            Attempts(quiet, 7 * second / 2, "ws://b:1 0 new", "ws://c:1 0 new", home + " 0", home + " 250");

            SignallingSession session = Join();
            session.Received("{\"type\":\"nodes\"," + nodes + "}", 0);
            session.MediaArrived(second);
            Check.True(session.Step(second), "media arrives");
            Next(session, "time");
            ExpectQuestion(session, 8 * second / 5, 3 * second / 10);
            for (int i = 0; i < 2; i++)
            {
                session.Broke("", "not reachable", 2 * second);
                session.TakeConnect(2 * second);
            }
            session.Broke("", "not reachable", 2 * second);
            Check.Equal(home, session.Server, "the server that was silent is the last");
            session.TakeConnect(2 * second);
            session.Opened(2 * second);
            session.Received(Joined(Id(Next(session, "join")), "second", true).Insert(1, nodes + ","), 2 * second);
            session.MediaArrived(2 * second);
            ExpectQuestion(session, 13 * second / 5, 3 * second / 5);
        }

        /// <summary>Makes an attempt to resume on a server, which refuses the session.</summary>
        static void Refuse(SignallingSession session, string server, string code, long now, string more = "")
        {
            Check.True(session.TakeConnect(now), "connects");
            Check.Equal(server, session.Server, "server");
            session.Opened(now);
            JToken join = Next(session, "join");
            Check.True(join.Find("resume") != null, "resumes");
            session.Received("{\"type\":\"error\",\"id\":\"" + Id(join) + "\",\"code\":\"" + code + "\",\"message\":\"no\"" + more + "}", now);
        }

        static SignallingEvent LastEvent(SignallingSession session)
        {
            SignallingEvent last = null;
            for (SignallingEvent e = session.NextEvent(); e != null; e = session.NextEvent())
            {
                last = e;
            }
            return last;
        }

        static SignallingSession Lose()
        {
            SignallingSession session = Join();
            session.Received("{\"type\":\"nodes\"," + nodes + "}", 0);
            session.Broke("", "the server died", 0);
            return session;
        }

        public static void ASessionEndsIfEveryServerRefuses()
        {
            SignallingSession session = Lose();
            Refuse(session, home, "forbidden", 0);
            Refuse(session, "ws://b:1", "unauthorized", 0);
            Check.True(session.TakeConnect(0), "asks the third server");
            session.Broke("", "not reachable", 0);
            Check.True(LastEvent(session) is Interrupted, "the third server may continue the session");
            Refuse(session, home, "resume", second);
            Refuse(session, "ws://b:1", "resume", second);
            Check.True(session.TakeConnect(second), "asks the third server again");
            session.Broke("unauthorized", "the token is refused", second);
            Check.Equal("unauthorized", ((Ended)LastEvent(session)).Code, "code");
            Check.True(session.IsOver, "every server has refused");
        }

        public static void ASessionThatEveryServerHasLostIsReplaced()
        {
            SignallingSession session = Lose();
            Refuse(session, home, "resume", 0);
            Refuse(session, "ws://b:1", "resume", 0);
            Refuse(session, "ws://c:1", "resume", 0);
            Check.True(Next(session, "join").Find("resume") == null, "joins again on the same websocket");
        }

        public static void ADecisionOfAnOperatorEndsTheAttempts()
        {
            SignallingSession session = Lose();
            Refuse(session, home, "kicked", 0);
            Check.Equal("kicked", ((Ended)LastEvent(session)).Code, "code");
        }

        public static void AServerThatIsFullNamesTheWait()
        {
            const string retry = ",\"retry_after_ms\":4000";
            SignallingSession resuming = Join();
            resuming.Broke("", "the server died", 0);
            Refuse(resuming, home, "limit", second, retry);
            Check.Equal(4000L, ((Interrupted)LastEvent(resuming)).RetryMilliseconds, "wait before the next attempt to resume");
            SignallingSession joining = Start();
            joining.Received("{\"type\":\"error\",\"id\":\"" + Id(Next(joining, "join")) + "\",\"code\":\"limit\",\"message\":\"no\"" + retry + "}", 0);
            Check.Equal(4000L, ((Interrupted)LastEvent(joining)).RetryMilliseconds, "wait before the next attempt to join");
        }

        public static void AddressesThatCannotBeUsedAreSkipped()
        {
            const string list = "\"nodes\":[7,{},{\"url\":8},{\"url\":\"file:///b\"},{\"url\":\"%\"},{\"url\":\"wss://\"},{\"url\":\"ws://b:1\"},{\"url\":\"wss://c\"},{\"url\":\"ws://b:1\"}]";
            SignallingSession session = Start();
            session.Received(Joined(Id(Next(session, "join")), "first", false).Insert(1, list + ","), 0);
            Event<Joined>(session);
            Attempts(session, 0, home + " 0", "ws://b:1 0 new", "wss://c 0 new", home + " 250");
        }

        public static void TokensAreNotSentWithoutTLSAfterTLS()
        {
            var session = new SignallingSession(new JoinSettings { Server = "wss://a", Room = "lab", Identity = "ada" });
            session.TakeConnect(0);
            session.Opened(0);
            string id = Id(Next(session, "join"));
            session.Received("{\"type\":\"moved\",\"id\":\"" + id + "\",\"url\":\"ws://b:1\",\"ticket\":\"T\"}", 0);
            Event<Unreadable>(session);
            session.Received(Joined(id, "first", false).Insert(1, nodes + ","), 0);
            Event<Joined>(session);
            session.Received("{\"type\":\"moved\",\"url\":\"ws://b:1\",\"ticket\":\"T\"}", 0);
            Event<Unreadable>(session);
            Check.True(session.IsJoined, "the session stays");
            session.Received("{\"type\":\"nodes\",\"nodes\":[{\"url\":\"ws://b:1\"},{\"url\":\"wss://c\"}]}", 0);
            Attempts(session, 0, "wss://a 0", "wss://c 0 new", "wss://a 250");
        }

        public static void ASessionMovesBackWithTheConnection()
        {
            SignallingSession session = Join();
            session.Received("{\"type\":\"nodes\"," + nodes + "}", 0);
            session.Broke("", "the network broke", 0);
            session.TakeConnect(0);
            session.Broke("", "not reachable", 0);
            session.TakeConnect(0);
            session.Opened(0);
            JToken join = Next(session, "join");
            session.Received("{\"type\":\"moved\",\"id\":\"" + Id(join) + "\",\"url\":\"ws://d:1\",\"ticket\":\"T\"}", 0);
            session.TakeConnect(0);
            session.Opened(0);
            join = Next(session, "join");
            Check.True(join.Object("resume").Flag("new_connection"), "a third server does not have the connection");
            session.Received("{\"type\":\"moved\",\"id\":\"" + Id(join) + "\",\"url\":\"" + home + "\",\"ticket\":\"T\"}", 0);
            session.TakeConnect(0);
            session.Opened(0);
            join = Next(session, "join");
            Check.True(!join.Object("resume").Flag("new_connection"), "the server of the session has it");
        }

        public static void RequestsPersistIfTheServerAsksForANewConnection()
        {
            SignallingSession session = Join();
            string id = session.SetQuality(new[] { Choice.Of("grace", "body", 0, 1) });
            Next(session, "set_quality");
            session.Received("{\"type\":\"ok\",\"id\":\"" + id + "\"}", 0);
            session.Broke("", "the server died", 0);
            session.Unpublish("own");
            session.TakeConnect(second);
            session.Opened(second);
            session.Received(Joined(Id(Next(session, "join")), "second", true), second);
            Next(session, "unpublish");
            session.Broke("connection", "the session continues with a new peer connection", second);
            session.TakeConnect(2 * second);
            session.Opened(2 * second);
            JToken join = Next(session, "join");
            Check.True(join.Object("resume").Flag("new_connection"), "a new connection");
            session.Received(Joined(Id(join), "third", true), 2 * second);
            JToken unpublish = Next(session, "unpublish");
            Check.Equal("own", unpublish.Text("publication", 9), "the request without a reply");
            Check.Equal(1L, Next(session, "set_quality").List("choices", 1)[0].Integer("quality", 0, 9), "the choice that the former server may not have passed on");
            session.Received("{\"type\":\"ok\",\"id\":\"" + Id(unpublish) + "\"}", 2 * second);
            session.Broke("", "the network broke", 2 * second);
            session.TakeConnect(3 * second);
            session.Opened(3 * second);
            session.Received(Joined(Id(Next(session, "join")), "fourth", true), 3 * second);
            Check.True(session.NextOutgoing() == null, "nothing else");
        }

        public static void ALostConnectionResumesWithANewOne()
        {
            SignallingSession session = Join();
            session.Broke("connection", "connection", 0);
            Event<Interrupted>(session);
            session.TakeConnect(second);
            session.Opened(second);
            JToken join = Next(session, "join");
            Check.True(join.Object("resume").Flag("new_connection"), "a new connection");
        }

        public static void WhatIsFinalEndsTheSession()
        {
            foreach (string code in new[] { "unauthorized", "version", "forbidden", "replaced", "malformed", "kicked", "closed", "revoked" })
            {
                SignallingSession session = Join();
                session.Broke(code, code, 0);
                Check.Equal(code, Event<Ended>(session).Code, "code");
                Check.True(session.IsOver && !session.TakeConnect(100 * second), "tries no more");
            }
            foreach (string code in new[] { "draining", "slow_reader", "rate_limited", "connection", "internal", "anything" })
            {
                SignallingSession session = Join();
                session.Broke(code, code, 0);
                Event<Interrupted>(session);
                Check.True(session.TakeConnect(second), "tries again after " + code);
            }
            SignallingSession refused = Start();
            refused.Received("{\"type\":\"error\",\"id\":\"" + Id(Next(refused, "join")) + "\",\"code\":\"identity_taken\",\"message\":\"no\"}", 0);
            Event<Interrupted>(refused);
            Check.True(refused.Present == null && refused.TakeConnect(second), "somebody of that name may leave");
        }

        public static void LeavingIsForGood()
        {
            SignallingSession session = Join();
            session.Leave();
            string id = Id(Next(session, "leave"));
            session.Received("{\"type\":\"ok\",\"id\":\"" + id + "\"}", 0);
            Check.Equal("", Event<Ended>(session).Code, "code");
            Check.True(session.Present == null && session.IsOver, "over");
            SignallingSession broken = Join();
            broken.Leave();
            broken.Broke("", "the network broke", 0);
            Event<RequestFailed>(broken);
            Event<Ended>(broken);
        }

        public static void ASilentServerIsGone()
        {
            SignallingSession session = Join();
            Check.True(session.Step(10 * second), "the server is asked for its clock");
            JToken time = Next(session, "time");
            session.Received("{\"type\":\"time_reply\",\"id\":\"" + Id(time) + "\",\"t0_us\":10000000,\"t1_us\":17000000,\"t2_us\":17000100}", 10 * second + 2100);
            Check.Equal(7 * second - 1000, session.ServerTime(0), "how far the server's clock is ahead");
            Check.True(session.Step(24 * second), "the server is there");
            Check.True(!session.Step(26 * second), "the server is silent");
        }

        public static void ClockTakesTheShortestTrip()
        {
            var clock = new ServerClock();
            clock.Learn(0, 600, 600, 1000);
            Check.Equal(100L, clock.At(0), "first exchange");
            clock.Learn(0, 5000, 5000, 9000);
            Check.Equal(100L, clock.At(0), "a longer trip says less");
            clock.Learn(0, 150, 150, 100);
            Check.Equal(100L, clock.At(0), "the shortest trip says most");
            clock.Learn(10 * second, 10 * second + 800, 10 * second + 800, 10 * second + 1000);
            Check.Equal(300L, clock.At(0), "an old one says less");
            clock.Learn(1000, 0, 500, 0);
            Check.Equal(300L, clock.At(0), "an answer before the question says nothing");
        }

        public static void SurvivesSpoiltMessages()
        {
            string[] whole =
            {
                Joined("r1", "x", false), "{\"type\":\"sending\",\"slots\":[{\"mid\":\"4\",\"generation\":1,\"quality\":0,\"reason\":\"auto\"}]}",
                "{\"type\":\"assignments\",\"assignments\":[{\"mid\":\"4\",\"generation\":1,\"track\":{\"participant\":\"g\",\"publication\":\"b\",\"tile\":0}}]}",
                "{\"type\":\"pose\",\"participant\":\"g\",\"publication\":\"b\",\"position\":[1,2,3],\"orientation\":[0,0,0,1]}", "{\"type\":\"later\"}",
                "{\"type\":\"offer\",\"offer\":1,\"sdp\":\"v=0\",\"media\":[{\"mid\":\"4\",\"role\":\"publish\",\"publication\":\"b\",\"tile\":0,\"quality\":1}]}",
                "{\"type\":\"time_reply\",\"t0_us\":1,\"t1_us\":9223372036854775807,\"t2_us\":0}", "{\"type\":\"error\",\"code\":\"invalid\",\"message\":\"m\"}"
            };
            var random = new Random(4);
            SignallingSession session = Join();
            for (int i = 0; i < 20000; i++)
            {
                char[] spoilt = whole[random.Next(whole.Length)].ToCharArray();
                for (int n = random.Next(4); n > 0; n--)
                {
                    spoilt[random.Next(spoilt.Length)] = "{}[]\",:-9.t "[random.Next(12)];
                }
                session.Received(new string(spoilt), i);
                session.NextOutgoing();
            }
            Check.True(session.IsJoined, "still joined");
            Check.True(session.EventsLost > 0, "events that nobody takes are dropped and counted");
            int waiting = 0;
            while (session.NextEvent() != null)
            {
                waiting++;
            }
            Check.True(waiting <= 4096, waiting + " events wait");
        }
    }
}
