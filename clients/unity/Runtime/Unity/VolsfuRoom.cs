using System;
using System.Collections.Generic;
using UnityEngine;
using Volsfu.Signalling;

namespace Volsfu.Unity
{
    /// <summary>
    /// Looks on in a room: who is there, what they publish and where it stands. Media comes by VolsfuBridge, which is a participant of its own; a program with
    /// a peer connection of its own answers the offers that it finds among the events.
    /// </summary>
    [AddComponentMenu("Volsfu/Room")]
    public sealed class VolsfuRoom : MonoBehaviour
    {
        [Tooltip("ws://host:port or wss://host:port")]
        public string server = "ws://localhost:8080";
        public string room = "lab";
        [Tooltip("Another name than the bridge's.")]
        public string identity = "ada-looking";
        [Tooltip("Access token; empty for servers that run with --dev.")]
        public string token = "";
        [Tooltip("Only with a peer connection of the program's own.")]
        public bool receive;

        /// <summary>The core's client; null while the component is disabled, or could not begin.</summary>
        public SignallingClient Client { get; private set; }

        /// <summary>Everything that happens, one after the other.</summary>
        public event Action<SignallingEvent> Happened;

        /// <summary>Who is in the room.</summary>
        public List<Participant> Participants()
        {
            return Client == null ? new List<Participant>() : Client.Participants();
        }

        void OnEnable()
        {
            try
            {
                Client = new SignallingClient(new JoinSettings { Server = server, Room = room, Identity = identity, Token = token, Receive = receive });
            }
            catch (ProtocolException e)
            {
                Debug.LogError("volsfu: " + e.Message, this);
            }
        }

        void OnDisable()
        {
            if (Client != null)
            {
                Client.Dispose();
                Client = null;
            }
        }

        void Update()
        {
            SignallingEvent happened;
            while (Client != null && Client.TryTakeEvent(out happened))
            {
                if (happened is Ended || happened is Interrupted)
                {
                    Debug.LogWarning("volsfu room: " + happened.GetType().Name, this);
                }
                if (Happened != null)
                {
                    Happened(happened);
                }
            }
        }
    }
}
