using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Threading;
using Volsfu.Native;

namespace Volsfu.Tests
{
    /// <summary>Programs that use the C library in this process.</summary>
    static class NativePuppet
    {
        const string Usage = "expected sizes, receive URL ROOM SECONDS, publish URL ROOM CODEC POINTS, talk URL ROOM, or move URL ROOM; each may end with a passphrase";

        internal static int Run(string[] args)
        {
            switch (args.Length > 1 ? args[1] : "")
            {
                case "sizes": return Sizes();
                case "receive": return Receive(args, double.Parse(args[4], CultureInfo.InvariantCulture));
                case "publish": return Publish(args, int.Parse(args[5], CultureInfo.InvariantCulture));
                case "talk": return Talk(args);
                case "move": return Move(args);
                default:
                    Console.Error.WriteLine(Usage);
                    return 2;
            }
        }

        static Session Enter(string[] args, int passphraseAt, string identity, bool receive)
        {
            return new Session(Settings(args, passphraseAt, identity, receive));
        }

        static SessionSettings Settings(string[] args, int passphraseAt, string identity, bool receive)
        {
            return new SessionSettings
            {
                Url = args[2], Room = args[3], Identity = identity, Receive = receive,
                Passphrase = args.Length > passphraseAt && args[passphraseAt] != "" ? args[passphraseAt] : null
            };
        }

        /// <summary>Prints the sizes of the structs that the library does not check.</summary>
        static unsafe int Sizes()
        {
            Console.WriteLine("volsfu_box {0} volsfu_tile {1} volsfu_quality {2} volsfu_choice {3}", sizeof(BoxStruct), sizeof(TileStruct),
                sizeof(QualityStruct), sizeof(ChoiceStruct));
            return 0;
        }

        /// <summary>
        /// Receives and decodes for some seconds, and prints a summary as JSON. Managed memory is counted after ten frames and
        /// a tenth of the time, in which buffers grow and code is compiled.
        /// </summary>
        static int Receive(string[] args, double seconds)
        {
            long decoded = 0, failed = 0, points = 0, allocated = 0, counted = 0, rasters = 0, begin = 0;
            int collections = 0;
            var known = new HashSet<string>();
            string statistics;
            using (var points0 = new PointBuffer(1))
            using (var raster = new RasterBuffer(1))
            using (var tile = new ReceivedTile())
            using (Session session = Enter(args, 5, "csharp", true))
            {
                var clock = Stopwatch.StartNew();
                bool warm = false;
                while (clock.Elapsed.TotalSeconds < seconds)
                {
                    if (!warm && decoded >= 10 && clock.Elapsed.TotalSeconds > seconds / 10)
                    {
                        warm = true;
                        begin = Resident();
                        collections = GC.CollectionCount(0);
                    }
                    long before = GC.GetAllocatedBytesForCurrentThread();
                    if (!session.TryNextFrame(100, tile))
                    {
                        continue;
                    }
                    try
                    {
                        if (tile.IsRaster && tile.Length > 0)
                        {
                            tile.Decode(raster);
                            points0.Set(raster);
                            if (rasters++ == 0)
                            {
                                SamePoints(tile, points0);
                            }
                        }
                        else
                        {
                            tile.Decode(points0);
                        }
                    }
                    catch (VolsfuException e)
                    {
                        Console.Error.WriteLine(e.Message);
                        failed++;
                        continue;
                    }
                    tile.Release();
                    // The names of a participant are allocated with its first frame.
                    if (!known.Add(tile.Participant) && warm)
                    {
                        allocated += GC.GetAllocatedBytesForCurrentThread() - before;
                        counted++;
                    }
                    decoded++;
                    points += points0.Count;
                }
                statistics = session.Statistics();
            }
            Console.WriteLine("{\"frames_decoded\":" + decoded + ",\"frames_undecodable\":" + failed + ",\"points\":" + points + ",\"rasters\":" + rasters +
                ",\"frames_counted\":" + counted + ",\"allocated_bytes\":" + allocated + ",\"collections\":" + (GC.CollectionCount(0) - collections) +
                ",\"resident_begin\":" + begin + ",\"resident_end\":" + Resident() + ",\"statistics\":" + statistics + "}");
            return 0;
        }

        /// <summary>Checks that the points of a raster are those that the library decodes.</summary>
        static void SamePoints(ReceivedTile tile, PointBuffer points)
        {
            using (var expected = new PointBuffer(1))
            {
                tile.Decode(expected);
                Check.Equal(expected.Count, points.Count, "the points of a raster");
                for (int i = 0; i < 3 * points.Count; i++)
                {
                    Check.True(Math.Abs(expected.Positions[i] - points.Positions[i]) < 1e-5, "the position of a point of a raster");
                }
                for (int i = 0; i < 4 * points.Count; i++)
                {
                    Check.True(expected.Colors[i] == points.Colors[i], "the colour of a point of a raster");
                }
            }
        }

        /// <summary>The resident memory of this process in bytes, on Linux.</summary>
        static long Resident()
        {
            return 4096 * long.Parse(File.ReadAllText("/proc/self/statm").Split(' ')[1], CultureInfo.InvariantCulture);
        }

        /// <summary>Publishes a sphere ten times per second until the end of its input.</summary>
        static int Publish(string[] args, int count)
        {
            string codec = args[4];
            var over = new ManualResetEvent(false);
            new Thread(() => { Console.In.ReadToEnd(); over.Set(); }) { IsBackground = true }.Start();
            var box = new Box(-1, -1, -1, 1, 1, 1);
            using (var sphere = new PointBuffer(count))
            using (Session session = Enter(args, 6, "publisher", false))
            using (Publisher publisher = session.Publish("body", 10, new[] { new TileDescription { Label = "body", Box = box } }, new[] { new QualityDescription { Name = "only" } }))
            {
                var data = new byte[1];
                for (uint number = 0; !over.WaitOne(100); number++)
                {
                    Fill(sphere, count, number);
                    if (publisher.Wanted(0, 0))
                    {
                        int length = Codecs.Encode(sphere, codec, box, 11, ref data);
                        publisher.Write(0, 0, number, codec, data, length);
                    }
                }
            }
            return 0;
        }

        static void Fill(PointBuffer points, int count, uint number)
        {
            for (int i = 0; i < count; i++)
            {
                double height = 2.0 * i / count - 1, around = Math.Sqrt(1 - height * height), angle = 2.4 * i + 0.1 * number;
                points.Positions[3 * i] = (float)(around * Math.Cos(angle));
                points.Positions[3 * i + 1] = (float)height;
                points.Positions[3 * i + 2] = (float)(around * Math.Sin(angle));
                points.Colors[4 * i] = (byte)i;
                points.Colors[4 * i + 1] = (byte)(i >> 8);
                points.Colors[4 * i + 2] = (byte)number;
                points.Colors[4 * i + 3] = 255;
            }
            points.Count = count;
        }

        /// <summary>
        /// Publishes and receives while the session moves to another server. It prints a line before the move and a line
        /// with what was received after the move, and ends with its input.
        /// </summary>
        static int Move(string[] args)
        {
            const int enough = 20;
            var over = new ManualResetEvent(false);
            new Thread(() => { Console.In.ReadToEnd(); over.Set(); }) { IsBackground = true }.Start();
            var box = new Box(-1, -1, -1, 1, 1, 1);
            var numbers = new HashSet<long>();
            int frames = 0, wanted = enough, interrupted = 0, moved = 0;
            var clock = Stopwatch.StartNew();
            using (var sphere = new PointBuffer(100))
            using (var tile = new ReceivedTile())
            using (Session session = Enter(args, 4, "csharp", true))
            using (Publisher publisher = session.Publish("body", 10, new[] { new TileDescription { Label = "body", Box = box } }, new[] { new QualityDescription { Name = "only" } }))
            {
                var data = new byte[1];
                for (uint number = 0; !over.WaitOne(0); )
                {
                    if (clock.ElapsedMilliseconds >= 100 * number && publisher.Wanted(0, 0))
                    {
                        Fill(sphere, 100, number);
                        int length = Codecs.Encode(sphere, "zstd", box, 11, ref data);
                        publisher.Write(0, 0, number, "zstd", data, length);
                        number++;
                    }
                    if (session.TryNextFrame(10, tile))
                    {
                        frames++;
                        numbers.Add(tile.Number);
                        tile.Release();
                    }
                    SessionEvent e;
                    while (session.TryNextEvent(0, out e))
                    {
                        interrupted += e.Kind == EventKind.Interrupted || e.Kind == EventKind.Resumed ? 1 : 0;
                        if (e.Kind == EventKind.Moved)
                        {
                            moved++;
                            wanted = frames + enough;
                        }
                    }
                    if (frames < wanted)
                    {
                        continue;
                    }
                    wanted = int.MaxValue;
                    Console.WriteLine(moved == 0 ? "receiving" : "{\"moved\":" + moved + ",\"interrupted\":" + interrupted + ",\"repeated\":" + (frames - numbers.Count) + "}");
                }
            }
            return 0;
        }

        /// <summary>Has two participants hear each other and exchange messages. It prints a line for each step.</summary>
        static int Talk(string[] args)
        {
            using (Session ada = Wait(Joined(args, "ada")))
            using (Session bob = Enter(args, 4, "bob", true))
            {
                using (Listener listener = bob.Listen("ada", "voice"))
                using (SoundPublisher voice = ada.PublishSound("voice", 0))
                {
                    Hear(voice, listener);
                }
                Console.WriteLine("sound");
                ada.SendText("chat", "guten Abend", false, "bob");
                ada.SendBinary("bytes", new byte[] { 0, 255 }, false);
                DataMessage message;
                Check.True(bob.TryNextMessage(60000, out message) && message.Text == "guten Abend" && message.Participant == "ada" && message.Topic == "chat" && !message.IsBinary, "the text");
                Check.True(bob.TryNextMessage(60000, out message) && message.IsBinary && message.Data.Length == 2 && message.Data[1] == 255, "the bytes");
                Check.True(!bob.TryNextMessage(0, out message), "no further message");
                try
                {
                    ada.SendText("chat", "to nobody", false, "nobody");
                    Check.True(false, "a message to nobody");
                }
                catch (VolsfuException e)
                {
                    Check.Equal(-114, e.Status, "the status of a message to nobody");
                }
                TooLong(() => ada.SendText("chat", "to all", false, new string[1000000]), "a message to a million participants");
                TooLong(() => ada.Publish("body", 30, new TileDescription[1000000], new QualityDescription[1]), "a million tiles");
                TooLong(() => ada.Publish("body", 30, new TileDescription[1], new QualityDescription[1000000]), "a million qualities");
                Console.WriteLine("messages");
                ada.SetAttributes("{\"color\":\"red\"}");
                ada.SetViewpoint(new[] { 0.0, 1, 2 }, new[] { 0.0, 0, 0, 1 }, 1, 1);
                SessionEvent e2;
                do
                {
                    Check.True(bob.TryNextEvent(60000, out e2), "the event of the attributes");
                } while (e2.Kind != EventKind.Attributes || e2.Json != "{\"color\":\"red\"}");
                Check.True(bob.Room().Contains("\"ada\""), "ada is in the room");
                Check.True(Math.Abs(bob.ServerTime() - (DateTime.UtcNow.Ticks - new DateTime(1970, 1, 1).Ticks) / 10) < 60000000, "the server's time");
                Console.WriteLine("attributes");
                GiveUp(args, bob);
                Console.WriteLine("joining");
            }
            return 0;
        }

        /// <summary>A refusal reaches the program, and a participant who gives up leaves.</summary>
        static void GiveUp(string[] args, Session bob)
        {
            try
            {
                Wait(new Joining(new SessionSettings { Url = args[2], Room = "", Identity = "cleo" }));
                Check.True(false, "a room without a name");
            }
            catch (VolsfuException)
            {
            }
            Joined(args, "dora").Dispose();
            using (Session eve = Wait(Joined(args, "eve")))
            {
                eve.Leave();
            }
            SessionEvent e;
            do
            {
                Check.True(bob.TryNextEvent(60000, out e), "eve leaves");
            } while (e.Kind != EventKind.ParticipantLeft || e.Participant != "eve");
            for (int tries = 0; bob.Room().Contains("\"dora\""); tries++)
            {
                Check.True(tries < 600, "dora leaves");
                bob.TryNextEvent(100, out e);
            }
        }

        /// <summary>Enters a room as programs do whose thread must not wait.</summary>
        static Joining Joined(string[] args, string identity)
        {
            return new Joining(Settings(args, 4, identity, true));
        }

        static Session Wait(Joining joining)
        {
            Session session;
            while (!joining.TryTake(out session))
            {
                Thread.Sleep(1);
            }
            return session;
        }

        static void TooLong(Action action, string what)
        {
            try
            {
                action();
            }
            catch (ArgumentException)
            {
                return;
            }
            Check.True(false, what);
        }

        /// <summary>Speaks a tone of 440 Hz in real time until it is heard.</summary>
        static void Hear(SoundPublisher voice, Listener listener)
        {
            const int packet = 960, window = 10 * packet;
            var spoken = new float[packet];
            var heard = new float[window];
            for (long begin = 0; ; begin += packet)
            {
                for (int i = 0; i < packet; i++)
                {
                    spoken[i] = (float)(0.25 * Math.Sin(2 * Math.PI * 440 * (begin + i) / 48000));
                }
                voice.Write(spoken, 0, packet);
                Array.Copy(heard, packet, heard, 0, window - packet);
                listener.Read(heard, window - packet, packet);
                double sine = 0, cosine = 0;
                for (int i = 0; i < window; i++)
                {
                    sine += heard[i] * Math.Sin(2 * Math.PI * 440 * i / 48000);
                    cosine += heard[i] * Math.Cos(2 * Math.PI * 440 * i / 48000);
                }
                double amplitude = 2 * Math.Sqrt(sine * sine + cosine * cosine) / window;
                if (amplitude > 0.2 && amplitude < 0.3)
                {
                    return;
                }
                Thread.Sleep(20);
            }
        }
    }
}
