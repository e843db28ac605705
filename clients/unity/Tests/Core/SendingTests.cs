using System;
using System.Collections.Generic;
using Volsfu.Bridge;

namespace Volsfu.Tests
{
    static class SendingTests
    {
        static byte[] Frame(int size, int seed)
        {
            var data = new byte[size];
            new Random(seed).NextBytes(data);
            return FrameHeader.Frame("cwi1", seed, data);
        }

        public static void NewerFramesReplaceThoseThatWait()
        {
            var queue = new SendQueue(1, 2, 1);
            var datagram = new byte[Datagram.Size];
            queue.AddTile(0, 0, 0, Frame(3000, 1));
            Check.True(queue.Next(datagram), "the first piece of frame 0");
            queue.AddTile(0, 0, 1, Frame(100, 2));
            queue.AddTile(1, 0, 1, Frame(100, 3));
            queue.AddTile(0, 0, 2, Frame(100, 4));
            queue.AddAudio(Frame(100, 5));
            var order = new List<string>();
            while (queue.Next(datagram))
            {
                Packet packet;
                bool audio = datagram[0] == 2;
                Check.True(Datagram.TryReadPacket(datagram, datagram.Length, audio, out packet), "a piece");
                order.Add(audio ? "sound" : packet.Tile + "." + packet.Frame);
            }
            Check.Equal("sound 0.0 0.0 1.1 0.2", string.Join(" ", order), "order: what has begun is finished");
            Check.Equal(1L, queue.Dropped, "dropped frames");
            Check.True(queue.IsEmpty, "the queue is empty");
            Check.Refuses(() => queue.AddTile(2, 0, 0, Frame(1, 1)), "a tile that was not announced");
            Check.Refuses(() => queue.AddTile(0, 1, 0, Frame(1, 1)), "a quality that was not announced");
            Check.Refuses(() => queue.AddTile(0, 0, 0, new byte[20]), "a frame whose header announces nothing, or none");
            for (int i = 0; i < 100; i++)
            {
                queue.Choose(1, new[] { 0 });
            }
            Check.Equal(1L + 100 - SendQueue.MaxUrgent, queue.Dropped, "dropped texts");
        }

        public static void ChoicesAreOneText()
        {
            var choices = new ChoiceText();
            Check.Equal("", choices.Text, "nothing chosen");
            choices.Choose(7, new[] { 0, -1, ChoiceText.Keep, 2 });
            choices.Choose(8, new[] { 1 });
            Check.Equal("8,1;7,0,-1,,2;", choices.Text, "two publishers");
            choices.Choose(7, new[] { 3 });
            Check.Equal("7,3;8,1;", choices.Text, "the newest choice of each");
            Check.Refuses(() => choices.Choose(7, new int[0]), "a choice of nothing");
            Check.Refuses(() => choices.Choose(7, new int[257]), "257 tiles");
            Check.Refuses(() => choices.Choose(7, new[] { 64 }), "a quality that no publication has");
            Check.Equal("7,3;8,1;", choices.Text, "what was refused changes nothing");
            for (uint client = 1; client <= 1000; client++)
            {
                choices.Choose(client, new[] { 0, 1, 2 });
            }
            Check.True(choices.Text.Length <= Datagram.MaxText && choices.Text.StartsWith("1000,0,1,2;999,"), "one datagram holds the newest");
            choices.Choose(5, new int[256]);
            Check.True(choices.Text.StartsWith("5,0,0,") && choices.Text.Length <= Datagram.MaxText, "the largest choice");
        }

        public static void HandshakeIsAnswered()
        {
            var handshake = new Handshake();
            Check.True(handshake.TakeReady(0), "a bridge without datagrams is sent a ready datagram");
            Check.True(!handshake.TakeReady(Handshake.CallInterval - 1), "not too often");
            Check.True(handshake.TakeReady(Handshake.CallInterval), "called again");
            handshake.Heard(DatagramType.Ready);
            Check.True(handshake.IsReady && handshake.TakeReady(201), "a ready datagram is answered at once");
            Check.True(!handshake.TakeReady(9000), "once");
            handshake.Heard(DatagramType.Tile);
            Check.True(!handshake.TakeReady(9001), "frames need no answer");
            handshake.Heard(DatagramType.Ready);
            Check.True(handshake.TakeReady(9002), "a repeated one is answered again");
            handshake.Reset();
            Check.True(!handshake.IsReady && handshake.TakeReady(9003), "the next bridge is called");
        }

        public static void RestartsTakeLongerEachTime()
        {
            var policy = new RestartPolicy();
            long now = 0, before = 0;
            foreach (long want in new long[] { 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000 })
            {
                policy.Started(now);
                long wait = policy.Ended(now + 5);
                Check.Equal(want, wait, "wait after " + before);
                before = wait;
                now += wait + 5;
            }
            policy.Started(now);
            Check.Equal(RestartPolicy.FirstWait, policy.Ended(now + RestartPolicy.WellAfter), "wait after a bridge that was well");
        }

        public static void PaceIsKept()
        {
            var pace = new SendPace();
            Check.Equal(SendPace.Burst, pace.Available(0), "at first");
            pace.Spend(SendPace.Burst);
            Check.Equal(0, pace.Available(0), "after a burst");
            Check.Equal(SendPace.Burst / 2, pace.Available(500), "half a millisecond later");
            Check.Equal(SendPace.Burst, pace.Available(1000000), "much later");
            Check.Equal(SendPace.Burst, pace.Available(0), "by a clock that goes back");
        }

        public static void ArgumentsSayWhatIsSet()
        {
            var settings = new BridgeSettings { Server = "wss://sfu.example.org", Port = 8002, Client = 3, Tiles = 4, Qualities = 2, Room = "my room", Token = "secret" };
            Check.Equal("--sfu wss://sfu.example.org -p :8002 -c 3 -t 4 -q 2 -l 0 -i -o --room \"my room\"", BridgeSettings.CommandLine(settings.Arguments()), "command line");
            Check.Equal(@"- """" ""a\""b"" ""c\d"" ""e f\\""", BridgeSettings.CommandLine(new[] { "-", "", "a\"b", @"c\d", @"e f\" }), "quoting");
            Check.Refuses(() => new BridgeClient(new BridgeSettings { Port = 65535 }), "a port without a next one");
            Check.Refuses(() => new BridgeClient(new BridgeSettings { Tiles = 0 }), "no tiles");
            Check.Refuses(() => new BridgeClient(new BridgeSettings { Secret = "fifteen letters" }), "a short secret");
        }

        public static void InterfacesAreArguments()
        {
            var settings = new BridgeSettings { Interfaces = { "wlan0", "wwan0" }, Redundancy = Redundancy.All };
            Check.Equal("--sfu localhost:8080 -p :8000 -c 1 -t 1 -q 1 -l 0 -i -o --interfaces wlan0,wwan0 --redundancy all", BridgeSettings.CommandLine(settings.Arguments()), "command line");
            settings = new BridgeSettings { Tcp = true };
            Check.Equal("--sfu localhost:8080 -p :8000 -c 1 -t 1 -q 1 -l 0 -i -o --tcp", BridgeSettings.CommandLine(settings.Arguments()), "command line over TCP");
            Check.Refuses(() => new BridgeClient(new BridgeSettings { Tcp = true, Interfaces = { "wlan0" } }), "TCP with an interface");
            settings = new BridgeSettings { Redundancy = Redundancy.Off };
            Check.Equal("--sfu localhost:8080 -p :8000 -c 1 -t 1 -q 1 -l 0 -i -o", BridgeSettings.CommandLine(settings.Arguments()), "command line without interfaces");
            Check.Refuses(() => new BridgeClient(new BridgeSettings { Redundancy = Redundancy.All }), "everything on two interfaces without interfaces");
            Check.Refuses(() => new BridgeClient(new BridgeSettings { Interfaces = { "a", "b", "c" } }), "three interfaces");
            Check.Refuses(() => new BridgeClient(new BridgeSettings { Interfaces = { "wlan0", "wlan0" } }), "an interface named twice");
            Check.Refuses(() => new BridgeClient(new BridgeSettings { Interfaces = { "" } }), "an interface without a name");
            Check.Refuses(() => new BridgeClient(new BridgeSettings { Interfaces = { "wlan0,wwan0" } }), "a name with a comma");
        }

        public static void SecretsArePresented()
        {
            var datagram = new byte[Datagram.Size];
            Datagram.WriteText(datagram, new string('x', Datagram.MaxText));
            Datagram.WriteSecret(datagram, "sixteen letters!");
            Check.Equal(18, (int)Datagram.ReadNumber(datagram, 0), "type");
            Check.Equal(16, (int)Datagram.ReadNumber(datagram, 4), "length");
            Check.Equal("sixteen letters!", System.Text.Encoding.UTF8.GetString(datagram, 8, 16), "secret");
            for (int i = 24; i < Datagram.Size; i++)
            {
                Check.Equal(0, datagram[i], "padding");
            }
            Check.Refuses(() => Datagram.WriteSecret(datagram, new string('x', Datagram.MaxSecret + 1)), "a long secret");
        }
    }
}
