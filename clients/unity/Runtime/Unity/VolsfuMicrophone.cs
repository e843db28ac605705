using UnityEngine;
using Volsfu.Native;

namespace Volsfu.Unity
{
    /// <summary>Publishes the sound of a microphone.</summary>
    [AddComponentMenu("Volsfu/Microphone")]
    public sealed class VolsfuMicrophone : MonoBehaviour
    {
        public VolsfuSession session;
        [Tooltip("The name of the microphone; empty for the system's.")]
        public string device = "";
        public string publication = "voice";

        const int Rate = 48000, Seconds = 1;

        SoundPublisher publisher;
        AudioClip clip;
        float[] samples;
        int read;

        string Device { get { return device == "" ? null : device; } }

        void Update()
        {
            if (session == null || session.Session == null)
            {
                return;
            }
            try
            {
                if (publisher == null)
                {
                    publisher = session.Session.PublishSound(publication, 0);
                    clip = Microphone.Start(Device, true, Seconds, Rate);
                    samples = new float[Rate * Seconds];
                    read = 0;
                }
                Send();
            }
            catch (VolsfuException e)
            {
                Debug.LogError("volsfu: " + e.Message, this);
                enabled = false;
            }
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
            if (publisher != null)
            {
                Microphone.End(Device);
                publisher.Dispose();
            }
            publisher = null;
        }
    }
}
