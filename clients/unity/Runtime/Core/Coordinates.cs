namespace Volsfu
{
    /// <summary>
    /// Turns Unity's coordinates, left-handed with z forward, into the room's, right-handed with z towards the viewer, and back: both are mirrored at the same
    /// plane, so that each method is its own inverse.
    /// </summary>
    public static class Coordinates
    {
        /// <summary>A place, in the other coordinates.</summary>
        public static double[] Position(double x, double y, double z)
        {
            return new[] { x, y, -z };
        }

        /// <summary>A rotation as a quaternion x, y, z, w, in the other coordinates.</summary>
        public static double[] Rotation(double x, double y, double z, double w)
        {
            return new[] { -x, -y, z, w };
        }
    }
}
