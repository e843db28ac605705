using System;
using UnityEngine;
using Volsfu.Native;

namespace Volsfu.Unity
{
    /// <summary>
    /// Draws one tile of a publication as squares of the size of its points, at this component's transform. Points of a depth
    /// camera are as large as its pixels; other points have the given size. The material uses Volsfu/Points for Unity's
    /// built-in pipeline, or Volsfu/Points URP.
    /// </summary>
    [AddComponentMenu("Volsfu/Points")]
    public sealed class VolsfuPoints : MonoBehaviour
    {
        public VolsfuSession session;
        public string participant = "bob";
        public string publication = "body";
        [Tooltip("The tile that is drawn. Each tile takes a component of its own.")]
        public int tile;
        public Material material;
        [Tooltip("The size of points in metres, if they are not of a depth camera.")]
        public float size = 0.004f;

        const int PositionBytes = 12, ColorBytes = 4;

        PointBuffer points;
        RasterBuffer raster;
        ComputeBuffer positions, colors;
        MaterialPropertyBlock properties;
        VolsfuSession registered;

        void OnEnable()
        {
            points = new PointBuffer(1);
            raster = new RasterBuffer(1);
            properties = new MaterialPropertyBlock();
            registered = session;
            if (registered != null)
            {
                registered.FrameReceived += Show;
            }
        }

        void OnDisable()
        {
            if (registered != null)
            {
                registered.FrameReceived -= Show;
            }
            registered = null;
            points.Dispose();
            raster.Dispose();
            Release();
        }

        void Release()
        {
            if (positions != null)
            {
                positions.Release();
                colors.Release();
            }
            positions = null;
            colors = null;
        }

        void Show(ReceivedTile frame)
        {
            // Another handler of the same frame may have disabled this component.
            if (registered == null || frame.Tile != tile || frame.Participant != participant || frame.Publication != publication)
            {
                return;
            }
            try
            {
                if (frame.IsRaster && frame.Length > 0)
                {
                    frame.Decode(raster);
                    points.Set(raster);
                    Describe();
                }
                else
                {
                    frame.Decode(points);
                    properties.SetVector("_Camera", new Vector4(0, 0, 0, 0));
                }
            }
            catch (VolsfuException e)
            {
                Debug.LogWarning("volsfu: " + e.Message, this);
                return;
            }
            if (positions == null || positions.count < points.Count)
            {
                Release();
                positions = new ComputeBuffer(points.Capacity, PositionBytes);
                colors = new ComputeBuffer(points.Capacity, ColorBytes);
            }
            positions.SetData(points.Positions, 0, 0, 3 * points.Count);
            colors.SetData(points.Colors, 0, 0, 4 * points.Count);
        }

        /// <summary>
        /// Sets the camera of a raster: its position, and its axis divided by the focal length, so that the product with the way
        /// from the camera to a point is the size of the point's pixel.
        /// </summary>
        void Describe()
        {
            double[] p = raster.Position, r = raster.Rotation;
            double scale = -Math.Pow(2, raster.Reduction) / raster.FocalX;
            properties.SetVector("_Camera", new Vector4((float)p[0], (float)p[1], (float)p[2], 1));
            properties.SetVector("_Axis", new Vector4((float)(scale * r[2]), (float)(scale * r[5]), (float)(scale * r[8]), 0));
        }

        void Update()
        {
            if (points.Count == 0 || positions == null || material == null)
            {
                return;
            }
            properties.SetBuffer("_Positions", positions);
            properties.SetBuffer("_Colors", colors);
            properties.SetMatrix("_ToWorld", transform.localToWorldMatrix);
            properties.SetFloat("_Size", size);
            // The shader makes two triangles for each point.
            Graphics.DrawProcedural(material, new Bounds(transform.position, new Vector3(20, 20, 20)), MeshTopology.Triangles, 6 * points.Count, 1, null, properties);
        }
    }
}
