using System.Collections.Generic;
using UnityEngine;
using Volsfu.Native;
using Volsfu.Signalling;
using Volsfu.Unity;

namespace Volsfu.Samples
{
    /// <summary>
    /// Shows and plays everything that others publish in the room of a VolsfuSession. Put both components on one object, and set
    /// the material.
    /// </summary>
    [RequireComponent(typeof(VolsfuSession))]
    public sealed class RoomView : MonoBehaviour
    {
        [Tooltip("A material with the shader Volsfu/Points, or Volsfu/Points URP.")]
        public Material material;

        readonly Dictionary<string, GameObject> shown = new Dictionary<string, GameObject>();
        VolsfuSession session;

        void OnEnable()
        {
            session = GetComponent<VolsfuSession>();
            session.EventReceived += Follow;
        }

        void OnDisable()
        {
            session.EventReceived -= Follow;
            foreach (GameObject thing in shown.Values)
            {
                Destroy(thing);
            }
            shown.Clear();
        }

        void Follow(SessionEvent e)
        {
            string key = e.Participant + "/" + e.Publication;
            GameObject thing;
            switch (e.Kind)
            {
                case EventKind.Connected:
                    // The participants who were in the room before.
                    session.Session.Participants().ForEach(Enter);
                    break;
                case EventKind.ParticipantJoined: Enter(Participant.Parse(e.Json)); break;
                case EventKind.Published: Show(e.Participant, Publication.Parse(e.Json)); break;
                case EventKind.Unpublished: Remove(key); break;
                case EventKind.ParticipantLeft:
                    foreach (string known in new List<string>(shown.Keys))
                    {
                        if (known.StartsWith(e.Participant + "/", System.StringComparison.Ordinal))
                        {
                            Remove(known);
                        }
                    }
                    break;
                case EventKind.Pose:
                    if (shown.TryGetValue(key, out thing))
                    {
                        double[] p = Coordinates.Position(e.Position[0], e.Position[1], e.Position[2]);
                        double[] q = Coordinates.Rotation(e.Orientation[0], e.Orientation[1], e.Orientation[2], e.Orientation[3]);
                        thing.transform.localPosition = new Vector3((float)p[0], (float)p[1], (float)p[2]);
                        thing.transform.localRotation = new Quaternion((float)q[0], (float)q[1], (float)q[2], (float)q[3]);
                        thing.transform.localScale = new Vector3((float)e.Scale, (float)e.Scale, (float)e.Scale);
                    }
                    break;
            }
        }

        void Enter(Participant participant)
        {
            foreach (Publication publication in participant.Publications.Values)
            {
                Show(participant.Identity, publication);
            }
        }

        void Show(string participant, Publication publication)
        {
            string name = publication.Name;
            string key = participant + "/" + name;
            Remove(key);
            // Components read their fields when the object becomes active.
            var thing = new GameObject(key);
            thing.SetActive(false);
            thing.transform.SetParent(transform, false);
            shown[key] = thing;
            if (publication.Audio)
            {
                var voice = thing.AddComponent<VolsfuVoice>();
                voice.session = session;
                voice.participant = participant;
                voice.publication = name;
            }
            else
            {
                for (int tile = 0; tile < publication.Tiles.Count; tile++)
                {
                    var points = thing.AddComponent<VolsfuPoints>();
                    points.session = session;
                    points.participant = participant;
                    points.publication = name;
                    points.tile = tile;
                    points.material = material;
                }
            }
            thing.SetActive(true);
        }

        void Remove(string key)
        {
            GameObject thing;
            if (shown.TryGetValue(key, out thing))
            {
                // The components end at once, so that a new object can take their place: Unity destroys objects later.
                thing.SetActive(false);
                Destroy(thing);
                shown.Remove(key);
            }
        }
    }
}
