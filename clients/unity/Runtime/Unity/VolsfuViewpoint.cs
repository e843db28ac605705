using System.Collections.Generic;
using UnityEngine;
using Volsfu.Signalling;

namespace Volsfu.Unity
{
    /// <summary>
    /// Reports the view of a camera. The server, which decides by it, receives it through a bridge or from a room in
    /// which this program itself receives. The receivers' bridge receives it as qualities of their tiles, which are
    /// chosen here.
    /// </summary>
    [AddComponentMenu("Volsfu/Viewpoint")]
    public sealed class VolsfuViewpoint : MonoBehaviour
    {
        public Camera eye;
        [Tooltip("The bridge that sends the view to the server, which then decides. For programs in which objects have the poses of their publishers. May be empty.")]
        public VolsfuBridge bridge;
        [Tooltip("May be empty.")]
        public VolsfuRoom room;
        [Tooltip("The receivers with qualities chosen here instead of by the server.")]
        public List<VolsfuReceiver> receivers = new List<VolsfuReceiver>();
        [Tooltip("Seconds between two checks of the view.")]
        public float interval = 0.1f;

        readonly Dictionary<VolsfuReceiver, string> sent = new Dictionary<VolsfuReceiver, string>();
        float nextLook;

        void Update()
        {
            if (eye == null)
            {
                return;
            }
            Viewpoint viewpoint = Now();
            if (bridge != null && bridge.Client != null)
            {
                bridge.Client.SetViewpoint(viewpoint);
            }
            if (room != null && room.receive && room.Client != null)
            {
                room.Client.SetViewpoint(viewpoint);
            }
            if (Time.unscaledTime < nextLook)
            {
                return;
            }
            nextLook = Time.unscaledTime + interval;
            foreach (VolsfuReceiver receiver in receivers)
            {
                if (receiver != null && receiver.bridge != null && receiver.bridge.IsReady)
                {
                    Look(receiver, viewpoint);
                }
                else if (receiver != null)
                {
                    sent.Remove(receiver);
                }
            }
        }

        void Look(VolsfuReceiver receiver, Viewpoint viewpoint)
        {
            int[] seen = receiver.Seen(viewpoint);
            string text = string.Join(",", seen);
            string before;
            if (seen.Length > 0 && (!sent.TryGetValue(receiver, out before) || before != text))
            {
                sent[receiver] = text;
                receiver.ChooseQualities(seen);
            }
        }

        Viewpoint Now()
        {
            Vector3 p = eye.transform.position;
            Quaternion q = eye.transform.rotation;
            return new Viewpoint
            {
                Position = Coordinates.Position(p.x, p.y, p.z), Orientation = Coordinates.Rotation(q.x, q.y, q.z, q.w),
                FieldOfView = Mathf.Clamp(eye.fieldOfView, 1, 170), Aspect = Mathf.Clamp(eye.aspect, 0.1f, 10)
            };
        }
    }
}
