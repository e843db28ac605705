using UnityEngine;
using Volsfu.Native;

namespace Volsfu.Unity
{
    /// <summary>Publishes the sound of a microphone, to each session of a Volsfu Session in turn.</summary>
    [AddComponentMenu("Volsfu/Microphone")]
    public sealed class VolsfuMicrophone : MonoBehaviour
    {
        public VolsfuSession session;
        [Tooltip("The name of the microphone; empty for the system's.")]
        public string device = "";
        public string publication = "voice";

        const int Rate = 48000, Seconds = 1;

        /// <summary>The session of the publisher; another one, or none, ends the publisher.</summary>
        Session joined;
        SoundPublisher publisher;
        AudioClip clip;
        float[] samples;
        int read;

        string Device { get { return device == "" ? null : device; } }

        void Update()
        {
            Session present = session == null ? null : session.Session;
            try
            {
                if (present != joined)
                {
                    End();
                    joined = present;
                    Begin();
                }
                if (publisher != null)
                {
                    Send();
                }
            }
            catch (VolsfuException e)
            {
                Debug.LogError("volsfu: " + e.Message, this);
                End();
                // Only another session is tried.
                joined = present;
            }
        }

        void Begin()
        {
            if (joined == null)
            {
                return;
            }
            publisher = joined.PublishSound(publication, 0);
            clip = Microphone.Start(Device, true, Seconds, Rate);
            samples = new float[Rate * Seconds];
            read = 0;
        }

        /// <summary>Sends the samples since the last call, up to the end of the clip and from its beginning.</summary>
        void Send()
        {
            int at = Microphone.GetPosition(Device);
            if (clip == null || at == read)
            {
                return;
            }
            clip.GetData(samples, 0);
            if (at < read)
            {
                publisher.Write(samples, read, samples.Length - read);
                read = 0;
            }
            publisher.Write(samples, read, at - read);
            read = at;
        }

        void OnDisable()
        {
            End();
        }

        void End()
        {
            if (publisher != null)
            {
                Microphone.End(Device);
                publisher.Dispose();
            }
            publisher = null;
            joined = null;
        }
    }
}
