using System.Collections.Generic;
using UnityEngine;
using UnityEngine.Rendering;
using Volsfu.Bridge;
using Volsfu.Unity;

namespace Volsfu.Samples
{
    /// <summary>
    /// Draws the frames of a VolsfuReceiver as points if the codec is "cwi0". The material must use the colours of
    /// vertices.
    /// </summary>
    [RequireComponent(typeof(VolsfuReceiver))]
    [RequireComponent(typeof(MeshFilter))]
    public sealed class PointsView : MonoBehaviour
    {
        [Tooltip("The tile that is drawn. Each tile takes an object of its own with this component.")]
        public int tile;

        readonly List<Vector3> vertices = new List<Vector3>();
        readonly List<Color32> paints = new List<Color32>();
        readonly List<int> indices = new List<int>();
        float[] positions = new float[0];
        byte[] colors = new byte[0];
        Mesh mesh;

        void OnEnable()
        {
            mesh = new Mesh();
            mesh.indexFormat = IndexFormat.UInt32;
            mesh.MarkDynamic();
            GetComponent<MeshFilter>().sharedMesh = mesh;
            GetComponent<VolsfuReceiver>().FrameReceived += Show;
        }

        void OnDisable()
        {
            GetComponent<VolsfuReceiver>().FrameReceived -= Show;
            Destroy(mesh);
        }

        void Show(ReceivedFrame frame)
        {
            int count;
            if (frame.Tile != tile || !RawPoints.TryRead(frame.Data, frame.Length, ref positions, ref colors, out count))
            {
                return;
            }
            vertices.Clear();
            paints.Clear();
            for (int i = 0; i < count; i++)
            {
                vertices.Add(new Vector3(positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]));
                paints.Add(new Color32(colors[3 * i], colors[3 * i + 1], colors[3 * i + 2], 255));
            }
            for (int i = indices.Count; i < count; i++)
            {
                indices.Add(i);
            }
            if (indices.Count > count)
            {
                indices.RemoveRange(count, indices.Count - count);
            }
            mesh.Clear();
            mesh.SetVertices(vertices);
            mesh.SetColors(paints);
            mesh.SetIndices(indices, MeshTopology.Points, 0);
        }
    }
}
