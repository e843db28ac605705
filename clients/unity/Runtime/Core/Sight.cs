using System;
using Volsfu.Signalling;

namespace Volsfu
{
    /// <summary>
    /// Computes a quality for each tile of an object from its visibility: tiles outside of the view get the lowest, so
    /// that they are present when the head turns; visible ones get the highest if they fill half of the view's height,
    /// and one less with each halving. The server lowers qualities further if the link is too slow.
    /// </summary>
    public static class Sight
    {
        /// <summary>
        /// The margin for imminent motion: tiles count as visible up to this angle in radians beyond the edge of the
        /// view.
        /// </summary>
        public const double Margin = 0.2;

        /// <summary>The share of the view's height from which a tile gets the highest quality.</summary>
        const double large = 0.5;

        /// <summary>
        /// Returns the qualities for tiles with these boxes on an object with this pose, for the given number of
        /// qualities. All values are in the room's coordinates.
        /// </summary>
        public static int[] Qualities(Viewpoint eye, ObjectPose stands, Tile[] tiles, int qualities)
        {
            var chosen = new int[tiles.Length];
            for (int i = 0; i < tiles.Length; i++)
            {
                chosen[i] = Quality(eye, stands, tiles[i], qualities - 1);
            }
            return chosen;
        }

        static int Quality(Viewpoint eye, ObjectPose stands, Tile tile, int highest)
        {
            double scale = stands.Scale == 0 ? 1 : stands.Scale;
            var centre = new double[3];
            var diagonal = new double[3];
            for (int i = 0; i < 3; i++)
            {
                centre[i] = (tile.Min[i] + tile.Max[i]) / 2 * scale;
                diagonal[i] = (tile.Max[i] - tile.Min[i]) * scale;
            }
            double radius = Length(diagonal) / 2;
            centre = Turn(stands.Orientation, centre);
            for (int i = 0; i < 3; i++)
            {
                centre[i] += stands.Position[i] - eye.Position[i];
            }
            double distance = Length(centre);
            if (distance <= radius)
            {
                return highest;
            }
            double half = eye.FieldOfView * Math.PI / 360;
            double corner = Math.Atan(Math.Tan(half) * Math.Sqrt(1 + eye.Aspect * eye.Aspect));
            double[] ahead = Turn(eye.Orientation, new double[] { 0, 0, -1 });
            double cosine = (ahead[0] * centre[0] + ahead[1] * centre[1] + ahead[2] * centre[2]) / distance;
            double size = Math.Asin(radius / distance);
            if (Math.Acos(Math.Max(-1, Math.Min(1, cosine))) - size > corner + Margin)
            {
                return 0;
            }
            int lower = 0;
            for (double share = size / half; share < large && lower < highest; share *= 2)
            {
                lower++;
            }
            return highest - lower;
        }

        static double Length(double[] v)
        {
            return Math.Sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        }

        /// <summary>Rotates a direction by a unit quaternion x, y, z, w.</summary>
        internal static double[] Turn(double[] q, double[] v)
        {
            double x = 2 * (q[1] * v[2] - q[2] * v[1]), y = 2 * (q[2] * v[0] - q[0] * v[2]), z = 2 * (q[0] * v[1] - q[1] * v[0]);
            return new[]
            {
                v[0] + q[3] * x + q[1] * z - q[2] * y, v[1] + q[3] * y + q[2] * x - q[0] * z, v[2] + q[3] * z + q[0] * y - q[1] * x
            };
        }
    }
}
