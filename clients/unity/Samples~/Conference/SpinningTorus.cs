using System;
using UnityEngine;
using Volsfu.Unity;

namespace Volsfu.Samples
{
    /// <summary>
    /// Publishes a rotating torus of points instead of a camera: one tile, at as many qualities as the bridge has, each
    /// with twice the points of the one below.
    /// </summary>
    [RequireComponent(typeof(VolsfuPublisher))]
    public sealed class SpinningTorus : MonoBehaviour
    {
        public int points = 20000;
        public float framesPerSecond = 30;

        float[] positions = new float[0];
        byte[] colors = new byte[0];
        float next;

        void Update()
        {
            var publisher = GetComponent<VolsfuPublisher>();
            if (Time.unscaledTime < next)
            {
                return;
            }
            next = Time.unscaledTime + 1 / framesPerSecond;
            if (!publisher.BeginCapture())
            {
                return;
            }
            int qualities = publisher.bridge.qualities;
            for (int quality = 0; quality < qualities; quality++)
            {
                int count = points >> (qualities - 1 - quality);
                Draw(count, Time.unscaledTime);
                publisher.PublishFrame(0, quality, RawPoints.Frame(positions, colors, count, publisher.CaptureMilliseconds));
            }
        }

        void Draw(int count, float time)
        {
            if (positions.Length < 3 * count)
            {
                positions = new float[3 * count];
                colors = new byte[3 * count];
            }
            for (int i = 0; i < count; i++)
            {
                double around = i * 2.399963, along = i * 2 * Math.PI / count, ring = 0.4 + 0.15 * Math.Cos(around);
                positions[3 * i] = (float)(ring * Math.Cos(along + time));
                positions[3 * i + 1] = (float)(0.9 + 0.15 * Math.Sin(around));
                positions[3 * i + 2] = (float)(ring * Math.Sin(along + time));
                colors[3 * i] = (byte)(128 + 127 * Math.Cos(along));
                colors[3 * i + 1] = (byte)(128 + 127 * Math.Sin(along));
                colors[3 * i + 2] = (byte)(128 + 127 * Math.Cos(around));
            }
        }
    }
}
