using System;
using System.IO;

namespace Volsfu.Tests
{
    /// <summary>
    /// The tests of the core, for test/interop/unity_test.go: "pure" runs those without external requirements, with the
    /// file of transcripts that the clients share;
    /// "fuzz" mutates the inputs in a folder for a number of milliseconds; "signalling" and "bridge" execute commands
    /// from standard input and print the events, one line each; "native" uses the C library.
    /// </summary>
    static class Program
    {
        static int Main(string[] args)
        {
            switch (args.Length > 0 ? args[0] : "")
            {
                case "pure":
                    SessionTests.Transcripts = args[1];
                    return Check.RunAll() == 0 ? 0 : 1;
                case "fuzz": return Fuzzing.Run(args[1], int.Parse(args[2])) == 0 ? 0 : 1;
                case "signalling": return SignallingPuppet.Run(args);
                case "bridge": return BridgePuppet.Run(args);
                case "native": return NativePuppet.Run(args);
                case "points": return Copy(args[1], args[2]);
                default:
                    Console.Error.WriteLine("expected pure, fuzz, signalling, bridge, native or points");
                    return 2;
            }
        }

        static int Copy(string from, string to)
        {
            var positions = new float[0];
            var colors = new byte[0];
            int count;
            byte[] frame = File.ReadAllBytes(from);
            if (!RawPoints.TryRead(frame, frame.Length, ref positions, ref colors, out count))
            {
                Console.Error.WriteLine("no frame of raw points");
                return 1;
            }
            File.WriteAllBytes(to, RawPoints.Frame(positions, colors, count, 0));
            return 0;
        }
    }
}
