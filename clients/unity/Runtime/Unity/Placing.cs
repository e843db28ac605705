using System.Linq;
using UnityEngine;
using Volsfu.Signalling;

namespace Volsfu.Unity
{
    /// <summary>Converts poses of Unity's scene to the room's coordinates.</summary>
    static class Placing
    {
        internal static ObjectPose Pose(Transform at)
        {
            Vector3 p = at.position;
            Quaternion q = at.rotation;
            return new ObjectPose
            {
                Position = Coordinates.Position(p.x, p.y, p.z), Orientation = Coordinates.Rotation(q.x, q.y, q.z, q.w), Scale = at.lossyScale.x
            };
        }

        internal static bool Same(ObjectPose one, ObjectPose other)
        {
            return other != null && one.Scale == other.Scale && one.Position.SequenceEqual(other.Position) && one.Orientation.SequenceEqual(other.Orientation);
        }

        internal static Tile[] Boxes(Bounds[] tiles)
        {
            var boxes = new Tile[tiles.Length];
            for (int i = 0; i < boxes.Length; i++)
            {
                Vector3 min = tiles[i].min, max = tiles[i].max;
                boxes[i] = new Tile { Min = new double[] { min.x, min.y, -max.z }, Max = new double[] { max.x, max.y, -min.z } };
            }
            return boxes;
        }
    }
}
