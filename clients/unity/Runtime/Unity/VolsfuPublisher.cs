using System;
using UnityEngine;
using Volsfu.Bridge;
using Volsfu.Signalling;

namespace Volsfu.Unity
{
    /// <summary>
    /// Publishes frames through a VolsfuBridge. Call BeginCapture, then Publish for each tile at each quality. The pose
    /// of the object in the room is this component's transform.
    /// </summary>
    [AddComponentMenu("Volsfu/Publisher")]
    public sealed class VolsfuPublisher : MonoBehaviour
    {
        static readonly DateTime epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);

        public VolsfuBridge bridge;
        [Tooltip("Boxes of the tiles in metres, in this transform's coordinates, one for each tile of the bridge; none if unknown.")]
        public Bounds[] tiles = { };

        uint number;
        BridgeClient sentTo;
        ObjectPose sentPose;
        Bounds[] sentTiles;

        /// <summary>The time of the present capture for the headers of frames, in milliseconds of UTC since 1970.</summary>
        public long CaptureMilliseconds { get; private set; }

        void Update()
        {
            BridgeClient client = bridge == null ? null : bridge.Client;
            ObjectPose pose = Placing.Pose(transform);
            if (client == null || (client == sentTo && tiles == sentTiles && Placing.Same(pose, sentPose)))
            {
                return;
            }
            sentTo = client;
            sentPose = pose;
            sentTiles = tiles;
            try
            {
                client.SetPose(pose, Placing.Boxes(tiles));
            }
            catch (ProtocolException e)
            {
                Debug.LogError("volsfu: " + e.Message, this);
            }
        }

        /// <summary>
        /// Starts a new capture, whose frames belong together. Returns false if there would be no receivers, so that
        /// encoding can be skipped.
        /// </summary>
        public bool BeginCapture()
        {
            number++;
            // Frames of the same millisecond would count as one capture.
            CaptureMilliseconds = Math.Max(CaptureMilliseconds + 1, (DateTime.UtcNow - epoch).Ticks / TimeSpan.TicksPerMillisecond);
            return bridge != null && bridge.IsReady && bridge.publish;
        }

        /// <summary>Publishes the encoded data of a tile at a quality; the codec has four characters, such as "cwi1".</summary>
        public void Publish(int tile, int quality, string codec, byte[] data)
        {
            PublishFrame(tile, quality, FrameHeader.Frame(codec, CaptureMilliseconds, data));
        }

        /// <summary>
        /// Publishes a frame that already has its header, as made by RawPoints.Frame. It must remain unchanged.
        /// </summary>
        public void PublishFrame(int tile, int quality, byte[] frame)
        {
            if (bridge != null && bridge.Client != null)
            {
                bridge.Client.SendTile(tile, quality, number, frame);
            }
        }

        /// <summary>Publishes the encoded data of a piece of sound, such as "VR2A".</summary>
        public void PublishSound(string codec, byte[] data)
        {
            if (bridge != null && bridge.Client != null)
            {
                bridge.Client.SendAudio(FrameHeader.Frame(codec, (DateTime.UtcNow - epoch).Ticks / TimeSpan.TicksPerMillisecond, data));
            }
        }
    }
}
