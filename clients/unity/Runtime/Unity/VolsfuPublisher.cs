using System;
using UnityEngine;
using Volsfu.Bridge;
using Volsfu.Signalling;

namespace Volsfu.Unity
{
    /// <summary>
    /// Publishes frames through a VolsfuBridge. Call BeginCapture, then Publish for each tile at each quality. The object stands in the room where this component's
    /// transform is.
    /// </summary>
    [AddComponentMenu("Volsfu/Publisher")]
    public sealed class VolsfuPublisher : MonoBehaviour
    {
        static readonly DateTime epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);

        public VolsfuBridge bridge;
        [Tooltip("Boxes of the tiles in metres, in this transform's coordinates, one for each tile of the bridge; none where they are not known.")]
        public Bounds[] tiles = { };

        uint number;
        BridgeClient told;
        ObjectPose toldPose;
        Bounds[] toldTiles;

        /// <summary>When the present capture was made, in milliseconds of UTC since 1970: what frames' headers are to say.</summary>
        public long CaptureMilliseconds { get; private set; }

        void Update()
        {
            BridgeClient client = bridge == null ? null : bridge.Client;
            ObjectPose pose = Placing.Pose(transform);
            if (client == null || (client == told && tiles == toldTiles && Placing.Same(pose, toldPose)))
            {
                return;
            }
            told = client;
            toldPose = pose;
            toldTiles = tiles;
            try
            {
                client.SetPose(pose, Placing.Boxes(tiles));
            }
            catch (ProtocolException e)
            {
                Debug.LogError("volsfu: " + e.Message, this);
            }
        }

        /// <summary>Begins a new capture, whose frames belong together. False where nobody would get them, so that encoding them can be saved.</summary>
        public bool BeginCapture()
        {
            number++;
            // Frames of the same millisecond would count as one capture.
            CaptureMilliseconds = Math.Max(CaptureMilliseconds + 1, (DateTime.UtcNow - epoch).Ticks / TimeSpan.TicksPerMillisecond);
            return bridge != null && bridge.IsReady && bridge.publish;
        }

        /// <summary>Publishes what a codec made of a tile at a quality; the codec is named by four characters, such as "cwi1".</summary>
        public void Publish(int tile, int quality, string codec, byte[] data)
        {
            PublishFrame(tile, quality, FrameHeader.Frame(codec, CaptureMilliseconds, data));
        }

        /// <summary>Publishes a frame that has its header already, as RawPoints.Frame makes it. It must stay as it is.</summary>
        public void PublishFrame(int tile, int quality, byte[] frame)
        {
            if (bridge != null && bridge.Client != null)
            {
                bridge.Client.SendTile(tile, quality, number, frame);
            }
        }

        /// <summary>Publishes what a codec made of a piece of sound, such as "VR2A".</summary>
        public void PublishSound(string codec, byte[] data)
        {
            if (bridge != null && bridge.Client != null)
            {
                bridge.Client.SendAudio(FrameHeader.Frame(codec, (DateTime.UtcNow - epoch).Ticks / TimeSpan.TicksPerMillisecond, data));
            }
        }
    }
}
