using System;
using System.Globalization;
using System.Security.Cryptography;
using System.Threading;
using Volsfu.Bridge;
using Volsfu.Signalling;

namespace Volsfu.Tests
{
    /// <summary>A BridgeClient that executes commands from its standard input, and prints the events.</summary>
    static class BridgePuppet
    {
        static BridgeSettings settings;
        static volatile bool over;

        internal static int Run(string[] args)
        {
            settings = new BridgeSettings
            {
                Executable = args[1], Server = args[2], Room = args[3], Identity = args[4], Port = Number(args[5]), Client = (uint)Number(args[6]),
                Tiles = Number(args[7]), Qualities = Number(args[8]), Secret = args.Length > 9 ? args[9] : "", Passphrase = args.Length > 10 ? args[10] : ""
            };
            using (var client = new BridgeClient(settings))
            {
                var reading = new Thread(() => Read(client)) { IsBackground = true };
                reading.Start();
                while (!over)
                {
                    Report(client);
                    Thread.Sleep(1);
                }
            }
            return 0;
        }

        static void Report(BridgeClient client)
        {
            BridgeEvent e;
            while (client.TryTakeEvent(out e))
            {
                SignallingPuppet.Say("event " + e.Kind + " " + e.Text);
            }
            ReceivedFrame frame;
            while (client.TryReceive(out frame))
            {
                FrameHeader header;
                bool whole = FrameHeader.TryRead(frame.Data, frame.Length, out header) && header.Length == frame.Length - FrameHeader.Size;
                SignallingPuppet.Say((frame.Audio ? "sound " : "frame ") + frame.Client + " " + frame.Tile + " " + frame.Quality + " " + frame.Number + " " +
                    (whole ? Hash(frame.Data, frame.Length) : "broken"));
                frame.Release();
            }
        }

        static void Read(BridgeClient client)
        {
            for (string line = Console.ReadLine(); line != null; line = Console.ReadLine())
            {
                string[] words = line.Split(' ');
                switch (words[0])
                {
                    case "publish": new Thread(() => Publish(client, Number(words[1]))) { IsBackground = true }.Start(); break;
                    case "sound": Sound(client, Number(words[1])); break;
                    case "choose": client.ChooseQualities((uint)Number(words[1]), Array.ConvertAll(words[2].Split(','), Number)); break;
                    case "points": new Thread(() => PublishPoints(client, Number(words[1]))) { IsBackground = true }.Start(); break;
                    case "key": client.SetKey(Number(words[1]), Bytes(words[2])); break;
                    case "use": client.UseEpoch(Number(words[1])); break;
                    case "forget": client.ForgetEpoch(Number(words[1])); break;
                    case "counts": Counts(client.Counts); break;
                    case "look": client.SetViewpoint(new Viewpoint { Position = Place(words) }); break;
                    case "stand": client.SetPose(new ObjectPose { Position = Place(words), Scale = 2 }, Boxes()); break;
                }
            }
            over = true;
        }

        static double[] Place(string[] words)
        {
            return new[] { Fraction(words[1]), Fraction(words[2]), Fraction(words[3]) };
        }

        static Tile[] Boxes()
        {
            var boxes = new Tile[settings.Tiles];
            for (int i = 0; i < boxes.Length; i++)
            {
                boxes[i] = new Tile { Min = new[] { i, 0, 0.0 }, Max = new[] { i + 1, 2, 0.5 } };
            }
            return boxes;
        }

        /// <summary>
        /// Publishes 30 captures per second, all tiles and qualities of each, and prints the hash of each frame.
        /// </summary>
        static void Publish(BridgeClient client, int size)
        {
            for (uint number = 0; !over; number++)
            {
                long capture = (DateTime.UtcNow - new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc)).Ticks / 10000;
                for (int tile = 0; tile < settings.Tiles; tile++)
                {
                    for (int quality = 0; quality < settings.Qualities; quality++)
                    {
                        byte[] frame = FrameHeader.Frame("cwi1", capture, Noise(size * (quality + 1), number * 1000 + (uint)(tile * 10 + quality)));
                        SignallingPuppet.Say("sent " + tile + " " + quality + " " + Hash(frame, frame.Length));
                        client.SendTile(tile, quality, number, frame);
                    }
                }
                Thread.Sleep(33);
            }
        }

        /// <summary>Publishes 15 captures per second of points without compression, in all tiles and qualities.</summary>
        static void PublishPoints(BridgeClient client, int count)
        {
            var positions = new float[3 * count];
            var colors = new byte[3 * count];
            for (int i = 0; i < positions.Length; i++)
            {
                positions[i] = i % 97 / 97f;
                colors[i] = (byte)i;
            }
            for (uint number = 0; !over; number++)
            {
                byte[] frame = RawPoints.Frame(positions, colors, count, (DateTime.UtcNow - new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc)).Ticks / 10000);
                for (int tile = 0; tile < settings.Tiles; tile++)
                {
                    for (int quality = 0; quality < settings.Qualities; quality++)
                    {
                        client.SendTile(tile, quality, number, frame);
                    }
                }
                Thread.Sleep(66);
            }
        }

        static byte[] Bytes(string hex)
        {
            var bytes = new byte[hex.Length / 2];
            for (int i = 0; i < bytes.Length; i++)
            {
                bytes[i] = byte.Parse(hex.Substring(2 * i, 2), NumberStyles.HexNumber, CultureInfo.InvariantCulture);
            }
            return bytes;
        }

        static void Sound(BridgeClient client, int frames)
        {
            for (int i = 0; i < frames; i++)
            {
                byte[] frame = FrameHeader.Frame("VR2A", 1, Noise(960, (uint)i + 77));
                SignallingPuppet.Say("sent sound 0 " + Hash(frame, frame.Length));
                client.SendAudio(frame);
                Thread.Sleep(20);
            }
            SignallingPuppet.Say("spoken");
        }

        static void Counts(BridgeCounts c)
        {
            SignallingPuppet.Say("counts starts=" + c.Starts + " malformed=" + c.Malformed + " foreign=" + c.Foreign + " incomplete=" + c.Assembly.Incomplete +
                " contradictions=" + c.Assembly.Contradictions + " duplicates=" + c.Assembly.Duplicates + " unsent=" + c.FramesNotSent);
        }

        static byte[] Noise(int size, uint seed)
        {
            var noise = new byte[size];
            new Random((int)seed).NextBytes(noise);
            return noise;
        }

        static string Hash(byte[] data, int length)
        {
            using (var sha = SHA256.Create())
            {
                return BitConverter.ToString(sha.ComputeHash(data, 0, length)).Replace("-", "").ToLowerInvariant();
            }
        }

        static double Fraction(string word) { return double.Parse(word, CultureInfo.InvariantCulture); }

        static int Number(string word) { return int.Parse(word, CultureInfo.InvariantCulture); }
    }
}
