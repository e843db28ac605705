using System;
using Volsfu.Bridge;

namespace Volsfu.Tests
{
    static class RawPointsTests
    {
        static readonly float[] places = { 0, 1, -2, -1, 1, -3 };
        static readonly byte[] paints = { 1, 2, 3, 4, 5, 6 };

        public static void LayoutIsThatOfVR2Gather()
        {
            byte[] frame = RawPoints.Frame(places, paints, 2, 0);
            Check.Equal("30-69-77-63-40-00-00-00-00-00-00-00-00-00-00-00", BitConverter.ToString(frame, 0, 16), "frame header");
            Check.Equal("63-70-63-64-08-02-21-20-00-00-00-00-00-00-00-00-00-00-00-00-00-00-00-00-20-00-00-00-00-00-00-00", BitConverter.ToString(frame, 16, 32), "header");
            Check.Equal("00-00-00-00-00-00-80-3F-00-00-00-40-01-02-03-00-00-00-80-BF-00-00-80-3F-00-00-40-40-04-05-06-00", BitConverter.ToString(frame, 48), "points");
        }

        public static void ReadsWhatIsWritten()
        {
            float[] positions = new float[0];
            byte[] colors = new byte[0];
            int count;
            byte[] frame = RawPoints.Frame(places, paints, 2, 1795188600123);
            Check.True(RawPoints.TryRead(frame, frame.Length, ref positions, ref colors, out count) && count == 2, "two points");
            Check.True(positions[2] == -2 && positions[3] == -1 && colors[5] == 6, "places and colours");
            Buffer.BlockCopy(new[] { float.NaN }, 0, frame, 48 + 4, 4);
            Check.True(RawPoints.TryRead(frame, frame.Length, ref positions, ref colors, out count) && count == 1, "a point that is nowhere is left out");
            Check.True(positions[0] == -1 && colors[0] == 4, "the other point");
            frame = RawPoints.Frame(places, paints, 0, 0);
            Check.True(RawPoints.TryRead(frame, frame.Length, ref positions, ref colors, out count) && count == 0, "no points");
            Check.Refuses(() => RawPoints.Frame(places, paints, 3, 0), "more points than there are places");
        }

        public static void BrokenFramesAreRefused()
        {
            byte[] whole = RawPoints.Frame(places, paints, 2, 0);
            var random = new Random(5);
            for (int i = 0; i < 20000; i++)
            {
                byte[] frame = (byte[])whole.Clone();
                for (int n = random.Next(1, 4); n > 0; n--)
                {
                    frame[random.Next(frame.Length)] = (byte)random.Next(256);
                }
                float[] positions = new float[0];
                byte[] colors = new byte[0];
                int count, length = random.Next(frame.Length + 1);
                Check.True(!RawPoints.TryRead(frame, length, ref positions, ref colors, out count) || count <= 2, "more points than the frame has");
            }
            foreach (int at in new[] { 0, 4, 16, 20, 40, 44 })
            {
                byte[] frame = (byte[])whole.Clone();
                frame[at] ^= 0x11;
                float[] positions = new float[0];
                byte[] colors = new byte[0];
                int count;
                Check.True(!RawPoints.TryRead(frame, frame.Length, ref positions, ref colors, out count), "byte " + at + " of the headers is another");
            }
        }
    }
}
