using System;
using Volsfu.Signalling;

namespace Volsfu.Tests
{
    static class SightTests
    {
        /// <summary>Rotating a direction in Unity and then converting it equals converting it and then rotating.</summary>
        public static void RotationsAreMirrored()
        {
            double s = Math.Sin(0.4), c = Math.Cos(0.4), n = Math.Sqrt(1 + 4 + 9);
            double[] unity = { s / n, 2 * s / n, -3 * s / n, c };
            double[] turned = Turn(unity, new[] { 0.3, -0.7, 1.1 });
            double[] want = Coordinates.Position(turned[0], turned[1], turned[2]);
            double[] got = Turn(Coordinates.Rotation(unity[0], unity[1], unity[2], unity[3]), Coordinates.Position(0.3, -0.7, 1.1));
            for (int i = 0; i < 3; i++)
            {
                Check.True(Math.Abs(want[i] - got[i]) < 1e-12, "component " + i + ": got " + got[i] + ", want " + want[i]);
            }
            double[] forward = Coordinates.Position(0, 0, 1);
            Check.Equal(-1.0, forward[2], "Unity looks along +z, the room along -z");
        }

        public static void WhatIsInSightGetsTheBest()
        {
            var tile = new Tile { Min = new[] { -0.5, -0.5, -0.5 }, Max = new[] { 0.5, 0.5, 0.5 } };
            Func<double, double, double, ObjectPose, int> at = (x, y, z, pose) =>
                Sight.Qualities(new Viewpoint { Position = new[] { x, y, z }, FieldOfView = 60, Aspect = 1.5 }, pose, new[] { tile }, 4)[0];
            var origin = new ObjectPose();
            Check.Equal(3, at(0, 0, 2, origin), "large, right ahead");
            Check.Equal(3, at(0, 0, 0.2, origin), "around the eye");
            Check.Equal(2, at(0, 0, 5, origin), "half as large");
            Check.Equal(0, at(0, 0, 60, origin), "far away");
            Check.Equal(0, at(0, 0, -3, origin), "behind the eye");
            Check.Equal(0, at(5, 0, 2, origin), "to the left of the view");
            Check.Equal(3, at(0, 0, 5, new ObjectPose { Scale = 4 }), "four times as large as published");
            Check.Equal(3, at(0, 0, 5, new ObjectPose { Position = new[] { 0, 0, 3.0 } }), "nearer than published");
            double half = Math.Sqrt(0.5);
            var viewpoint = new Viewpoint { Orientation = new[] { 0, half, 0, half }, FieldOfView = 60, Aspect = 1 };
            int[] turned = Sight.Qualities(viewpoint, new ObjectPose { Position = new[] { -2.0, 0, 0 } }, new[] { tile, tile }, 2);
            Check.Equal("1 1", turned[0] + " " + turned[1], "an eye that is turned to the left");
        }

        static double[] Turn(double[] q, double[] v)
        {
            double tx = 2 * (q[1] * v[2] - q[2] * v[1]), ty = 2 * (q[2] * v[0] - q[0] * v[2]), tz = 2 * (q[0] * v[1] - q[1] * v[0]);
            return new[]
            {
                v[0] + q[3] * tx + q[1] * tz - q[2] * ty, v[1] + q[3] * ty + q[2] * tx - q[0] * tz, v[2] + q[3] * tz + q[0] * ty - q[1] * tx
            };
        }
    }
}
