using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using Volsfu.Bridge;
using Volsfu.Signalling;

namespace Volsfu.Tests
{
    /// <summary>
    /// Mutates valid inputs of the package's readers. The outcome of an input stands for its path through a reader,
    /// because Mono has no coverage of a single input: the text of a refusal without its values, or the kind of what
    /// was read. An input with a new outcome is kept, and mutated as the valid inputs are.
    /// </summary>
    static class Fuzzing
    {
        const int mostKept = 1000;
        /// <summary>The bytes of incomplete frames, and as many in pools.</summary>
        const long mostGrowth = 2L * FrameAssembler.MaxHeld;
        static readonly byte[] extremes = { 0, 1, 0x7f, 0x80, 0xff };
        static readonly string[] words =
        {
            "{", "}", "[", "]", ",", ":", "\"", "\\u0000", "\\ud800", "null", "true", "-1", "0.5", "1e999", "9223372036854775807", "4294967296", "\"id\":\"1\",", "\"tile\":-1,"
        };

        /// <summary>
        /// Runs the readers for the given time each, with the files KIND.NUMBER of a folder as valid inputs. Prints a
        /// line for each reader, and returns the number of readers that failed.
        /// </summary>
        internal static int Run(string folder, int milliseconds)
        {
            int failed = 0;
            failed += Fuzz(folder, "datagram", milliseconds, new DatagramReader().Read) ? 0 : 1;
            failed += Fuzz(folder, "frame", milliseconds, ReadFrame) ? 0 : 1;
            failed += Fuzz(folder, "message", milliseconds, new MessageReader().Read) ? 0 : 1;
            return failed;
        }

        static bool Fuzz(string folder, string kind, int milliseconds, Func<byte[], string> read)
        {
            var kept = new List<byte[]>();
            var outcomes = new HashSet<string>();
            byte[] input = null;
            try
            {
                foreach (string file in Directory.GetFiles(folder, kind + ".*"))
                {
                    input = File.ReadAllBytes(file);
                    kept.Add(input);
                    outcomes.Add(read(input));
                }
                Check.True(kept.Count > 0, "no valid inputs in " + folder);
                int valid = outcomes.Count, inputs = 0;
                var random = new Random(7);
                long before = GC.GetTotalMemory(true);
                for (int until = Environment.TickCount + milliseconds; Environment.TickCount - until < 0; inputs++)
                {
                    input = Mutate(kept, random);
                    if (outcomes.Add(read(input)) && kept.Count < mostKept)
                    {
                        kept.Add(input);
                    }
                }
                long grown = GC.GetTotalMemory(true) - before;
                Check.True(grown < mostGrowth, "memory has grown by " + grown + " bytes");
                Console.WriteLine("ok fuzz " + kind + ": " + inputs + " inputs, " + valid + " outcomes of valid ones, " + outcomes.Count + " in all");
                return true;
            }
            catch (Exception e)
            {
                Console.WriteLine("FAIL fuzz " + kind + ": " + e + "\ninput: " + (input == null ? "none" : BitConverter.ToString(input)));
                return false;
            }
        }

        /// <summary>Changes one of the kept inputs, more often one of the last.</summary>
        static byte[] Mutate(List<byte[]> kept, Random random)
        {
            int newest = Math.Min(kept.Count, 16);
            byte[] input = kept[random.Next(2) == 0 ? random.Next(kept.Count) : kept.Count - 1 - random.Next(newest)];
            var output = new List<byte>(input);
            for (int n = random.Next(1, 5); n > 0; n--)
            {
                int at = random.Next(random.Next(2) == 0 ? Math.Min(output.Count, 64) + 1 : output.Count + 1);
                int length = random.Next(Math.Min(8, output.Count - at) + 1);
                switch (random.Next(6))
                {
                    case 0:
                        output.RemoveRange(at, length);
                        break;
                    case 1:
                        output.InsertRange(at, Encoding.UTF8.GetBytes(words[random.Next(words.Length)]));
                        break;
                    case 2:
                        byte[] other = kept[random.Next(kept.Count)];
                        int from = random.Next(other.Length + 1);
                        output.InsertRange(at, new ArraySegment<byte>(other, from, Math.Min(random.Next(64), other.Length - from)));
                        break;
                    default:
                        byte value = random.Next(2) == 0 ? extremes[random.Next(extremes.Length)] : (byte)random.Next(256);
                        for (int i = at; i < output.Count && i < at + (random.Next(4) == 0 ? 4 : 1); i++)
                        {
                            output[i] = value;
                        }
                        break;
                }
            }
            return output.ToArray();
        }

        /// <summary>Returns a text without digits and without what is in quotes.</summary>
        static string WithoutValues(string text)
        {
            var shape = new StringBuilder();
            bool quoted = false;
            foreach (char c in text)
            {
                quoted ^= c == '"';
                if (!quoted && (c < '0' || c > '9'))
                {
                    shape.Append(c);
                }
            }
            return shape.ToString();
        }

        static string ReadFrame(byte[] input)
        {
            var positions = new float[0];
            var colors = new byte[0];
            int count;
            FrameHeader header;
            bool headed = FrameHeader.TryRead(input, input.Length, out header);
            Check.True(!headed || (header.Length >= 0 && header.Length <= input.Length - FrameHeader.Size), "a header announces " + header.Length + " of " + input.Length + " bytes");
            bool read = RawPoints.TryRead(input, input.Length, ref positions, ref colors, out count);
            Check.True(count <= input.Length / RawPoints.PointBytes && positions.Length <= 3 * input.Length, count + " points of " + input.Length + " bytes");
            return "header " + headed + ", codec " + (headed && header.Codec == RawPoints.Codec) + ", points " + read + " " + Magnitude(count);
        }

        static int Magnitude(long number)
        {
            int bits = 0;
            for (; number > 0; number >>= 1)
            {
                bits++;
            }
            return bits;
        }

        /// <summary>Reads datagrams of the bridge.</summary>
        sealed class DatagramReader
        {
            readonly FrameAssembler assembler = new FrameAssembler();
            long now;

            internal string Read(byte[] input)
            {
                DatagramType type;
                Packet packet;
                if (!Datagram.TryReadType(input, input.Length, out type))
                {
                    return "refused";
                }
                if (type == DatagramType.Control)
                {
                    return "text of " + Magnitude(Datagram.ReadText(input, input.Length).Length);
                }
                if (type == DatagramType.Ready)
                {
                    return "ready";
                }
                if (!Datagram.TryReadPacket(input, input.Length, type == DatagramType.Audio, out packet))
                {
                    return type + " refused";
                }
                AssemblyCounts before = assembler.Counts;
                ReceivedFrame frame = assembler.Push(ref packet, now);
                AssemblyCounts after = assembler.Counts;
                assembler.Expire(now++ / 50);
                Check.True(frame == null || frame.Length <= FrameAssembler.MaxFrame, "a frame of " + packet.Length + " bytes");
                Check.True(assembler.Held <= FrameAssembler.MaxHeld, "held are " + assembler.Held + " bytes");
                return type + ", frame " + (frame != null) + ", of " + Magnitude(packet.Length) + ", duplicate " + (after.Duplicates - before.Duplicates) +
                    ", contradiction " + (after.Contradictions - before.Contradictions) + ", late " + (after.Late - before.Late) + ", too much " + (after.TooMuch - before.TooMuch) +
                    ", incomplete " + (after.Incomplete - before.Incomplete);
            }
        }

        /// <summary>Reads messages of the server.</summary>
        sealed class MessageReader
        {
            SignallingSession session = SessionTests.Join();
            long now;

            internal string Read(byte[] input)
            {
                if (!session.IsJoined)
                {
                    // The last message has ended the session.
                    session = SessionTests.Join();
                }
                session.Received(Encoding.UTF8.GetString(input), now++);
                var outcome = new StringBuilder();
                for (SignallingEvent e = session.NextEvent(); e != null; e = session.NextEvent())
                {
                    var unreadable = e as Unreadable;
                    outcome.Append(e.GetType().Name).Append(unreadable == null ? "" : WithoutValues(unreadable.Problem)).Append(';');
                }
                for (string text = session.NextOutgoing(); text != null; text = session.NextOutgoing())
                {
                    outcome.Append("sends ").Append(text.Length < 20 ? text.Length : 20).Append(';');
                }
                return outcome.ToString();
            }
        }
    }
}
