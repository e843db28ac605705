using System;
using System.Collections.Generic;
using UnityEngine;
using Volsfu.Signalling;

namespace Volsfu.Unity
{
    /// <summary>
    /// Observes a room: participants, publications and poses. Media is carried by VolsfuBridge, which is a separate
    /// participant; a program with its own peer connection answers the offers among the events.
    /// </summary>
    [AddComponentMenu("Volsfu/Room")]
    public sealed class VolsfuRoom : MonoBehaviour
    {
        [Tooltip("ws://host:port or wss://host:port")]
        public string server = "ws://localhost:8080";
        public string room = "lab";
        [Tooltip("A name different from the bridge's.")]
        public string identity = "ada-looking";
        [Tooltip("Access token; empty for servers that run with --dev.")]
        public string token = "";
        [Tooltip("Only with a peer connection of the program's own.")]
        public bool receive;
        [Tooltip("The program keeps two peer connections during a move to another server.")]
        public bool makeBeforeBreak;

        /// <summary>The core's client; null while the component is disabled, or could not start.</summary>
        public SignallingClient Client { get; private set; }

        /// <summary>All events in their order.</summary>
        public event Action<SignallingEvent> Happened;

        /// <summary>The participants of the room.</summary>
        public List<Participant> Participants()
        {
            return Client == null ? new List<Participant>() : Client.Participants();
        }

        void OnEnable()
        {
            try
            {
                Client = new SignallingClient(new JoinSettings
                {
                    Server = server, Room = room, Identity = identity, Token = token, Receive = receive, MakeBeforeBreak = makeBeforeBreak
                });
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
                Interrupted interrupted = happened as Interrupted;
                Ended ended = happened as Ended;
                if (interrupted != null)
                {
                    Debug.LogWarning("volsfu room: the connection to the server broke: " + interrupted.Reason +
                        ". The next attempt is in " + interrupted.RetryMilliseconds + " ms.", this);
                }
                else if (ended != null && ended.Code.Length > 0)
                {
                    Debug.LogWarning("volsfu room: the session is over (" + ended.Code + "): " + ended.Message, this);
                }
                if (Happened != null)
                {
                    Happened(happened);
                }
            }
        }
    }
}
