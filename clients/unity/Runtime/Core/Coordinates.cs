namespace Volsfu
{
    /// <summary>
    /// Converts Unity's coordinates, left-handed with z forward, to the room's, right-handed with z towards the viewer,
    /// and back. Both conversions are the same reflection, so each method is its own inverse.
    /// </summary>
    public static class Coordinates
    {
        /// <summary>Converts a position.</summary>
        public static double[] Position(double x, double y, double z)
        {
            return new[] { x, y, -z };
        }

        /// <summary>Converts a rotation as a quaternion x, y, z, w.</summary>
        public static double[] Rotation(double x, double y, double z, double w)
        {
            return new[] { -x, -y, z, w };
        }
    }
}
