using UnityEngine;
using Volsfu.Native;

namespace Volsfu.Unity
{
    /// <summary>
    /// Plays the sound of a publication at the place of an AudioSource. Unity mixes at its own rate, which must be 48,000 samples
    /// per second: Project Settings, Audio, System Sample Rate. The component follows the sessions of its Volsfu Session.
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

        /// <summary>The session of the listener; another one, or none, ends the listener.</summary>
        Session joined;

        void Update()
        {
            Session present = session == null ? null : session.Session;
            if (present == joined)
            {
                return;
            }
            End();
            joined = present;
            if (present != null)
            {
                Begin();
            }
        }

        void Begin()
        {
            if (AudioSettings.outputSampleRate != Rate)
            {
                Debug.LogError("volsfu: the system sample rate is " + AudioSettings.outputSampleRate + ", expected " + Rate, this);
                enabled = false;
                return;
            }
            try
            {
                listener = joined.Listen(participant, publication);
            }
            catch (VolsfuException e)
            {
                Debug.LogError("volsfu: " + e.Message, this);
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
            End();
        }

        void End()
        {
            Listener ending = listener;
            listener = null;
            joined = null;
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
