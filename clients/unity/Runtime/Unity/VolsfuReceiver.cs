using System;
using UnityEngine;
using Volsfu.Bridge;
using Volsfu.Signalling;

namespace Volsfu.Unity
{
    /// <summary>Receives the object of one publisher. Its pose is this component's transform.</summary>
    [AddComponentMenu("Volsfu/Receiver")]
    public sealed class VolsfuReceiver : MonoBehaviour
    {
        public VolsfuBridge bridge;
        [Tooltip("The publisher's number: the digits at the end of its identity.")]
        public int client = 2;
        [Tooltip("Boxes of the publisher's tiles in metres, in this transform's coordinates, for VolsfuViewpoint.")]
        public Bounds[] tiles = { new Bounds(new Vector3(0, 0.9f, 0), new Vector3(1, 1.8f, 1)) };
        [Range(1, 64)] public int qualities = 1;

        VolsfuBridge registered;

        /// <summary>A received frame. It is valid until the handlers return, which must decode or copy it.</summary>
        public event Action<ReceivedFrame> FrameReceived;

        /// <summary>Chooses the quality of each tile, -1 for off.</summary>
        public void ChooseQualities(params int[] chosen)
        {
            if (bridge != null && bridge.Client != null)
            {
                bridge.Client.ChooseQualities((uint)client, chosen);
            }
        }

        void OnEnable()
        {
            registered = bridge;
            if (registered != null)
            {
                registered.Register(this);
            }
        }

        void OnDisable()
        {
            if (registered != null)
            {
                registered.Unregister(this);
                registered = null;
            }
        }

        internal void Take(ReceivedFrame frame)
        {
            if (FrameReceived != null)
            {
                FrameReceived(frame);
            }
        }

        /// <summary>Returns the qualities for this object by its visibility.</summary>
        internal int[] Seen(Viewpoint eye)
        {
            return Sight.Qualities(eye, Placing.Pose(transform), Placing.Boxes(tiles), qualities);
        }
    }
}
