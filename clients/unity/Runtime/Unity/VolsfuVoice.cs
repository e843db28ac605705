using UnityEngine;
using Volsfu.Native;

namespace Volsfu.Unity
{
    /// <summary>
    /// Plays the sound of a publication at the place of an AudioSource. Unity mixes at its own rate, which must be 48,000 samples
    /// per second: Project Settings, Audio, System Sample Rate.
    /// </summary>
    [AddComponentMenu("Volsfu/Voice")]
    [RequireComponent(typeof(AudioSource))]
    public sealed class VolsfuVoice : MonoBehaviour
    {
        public VolsfuSession session;
        public string participant = "bob";
        public string publication = "voice";

        const int Rate = 48000;

        volatile Listener listener;

        void Update()
        {
            if (listener != null || session == null || session.Session == null)
            {
                return;
            }
            if (AudioSettings.outputSampleRate != Rate)
            {
                Debug.LogError("volsfu: the system sample rate is " + AudioSettings.outputSampleRate + ", expected " + Rate, this);
                enabled = false;
                return;
            }
            try
            {
                listener = session.Session.Listen(participant, publication);
            }
            catch (VolsfuException e)
            {
                Debug.LogError("volsfu: " + e.Message, this);
                enabled = false;
                return;
            }
            // The clip is as long as the buffer, and asks Fill for its samples again and again.
            AudioSource source = GetComponent<AudioSource>();
            source.clip = AudioClip.Create("volsfu", Rate, 1, Rate, true, Fill);
            source.loop = true;
            source.Play();
        }

        void OnDisable()
        {
            Listener ending = listener;
            listener = null;
            if (ending != null)
            {
                GetComponent<AudioSource>().Stop();
                ending.Dispose();
            }
        }

        /// <summary>Unity calls this on its thread for sound.</summary>
        void Fill(float[] samples)
        {
            Listener from = listener;
            if (from != null)
            {
                from.Read(samples, 0, samples.Length);
            }
            else
            {
                System.Array.Clear(samples, 0, samples.Length);
            }
        }
    }
}
