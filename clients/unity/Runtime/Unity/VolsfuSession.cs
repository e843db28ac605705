using System;
using UnityEngine;
using Volsfu.Native;

namespace Volsfu.Unity
{
    /// <summary>
    /// Joins a room with the C library in this process, without a bridge. The library is in Assets/Plugins. Frames are raised
    /// on Unity's thread, once per drawn image. Joining and leaving do not make this thread wait.
    /// </summary>
    [AddComponentMenu("Volsfu/Session")]
    public sealed class VolsfuSession : MonoBehaviour
    {
        [Tooltip("The server's address, as ws://host:port or wss://host:port.")]
        public string url = "ws://localhost:8080";
        public string room = "lab";
        public string identity = "ada";
        [Tooltip("The access token; empty for servers without tokens.")]
        public string token = "";
        [Tooltip("A passphrase for end-to-end encryption; empty for none.")]
        public string passphrase = "";
        [Tooltip("Media over TCP alone, for networks that block UDP.")]
        public bool tcp;

        /// <summary>The most frames that are raised for one drawn image.</summary>
        const int MostFrames = 64;

        ReceivedTile tile;
        Joining joining;

        /// <summary>A received frame, which is valid until the handlers return. They decode it to their buffers.</summary>
        public event Action<ReceivedTile> FrameReceived;

        public event Action<SessionEvent> EventReceived;
        public event Action<DataMessage> MessageReceived;

        /// <summary>The session; null while it is not joined.</summary>
        public Session Session { get; private set; }

        void OnEnable()
        {
            tile = new ReceivedTile();
            joining = new Joining(new SessionSettings
            {
                Url = url, Room = room, Identity = identity, Token = token == "" ? null : token, Passphrase = passphrase == "" ? null : passphrase, Tcp = tcp
            });
        }

        void OnDisable()
        {
            if (joining != null)
            {
                joining.Dispose();
            }
            joining = null;
            Session session = Session;
            Session = null;
            if (session != null)
            {
                session.Leave();
            }
            if (tile != null)
            {
                tile.Dispose();
            }
            tile = null;
        }

        void Update()
        {
            if (joining != null)
            {
                Enter();
            }
            if (Session == null)
            {
                return;
            }
            try
            {
                Take();
            }
            catch (VolsfuException e)
            {
                Debug.LogError("volsfu: " + e.Message, this);
                if (e.Status == VolsfuException.Closed || e.Status == VolsfuException.Lost || e.Status <= -100)
                {
                    OnDisable();
                }
            }
        }

        /// <summary>Takes the session as soon as the server has accepted the participant.</summary>
        void Enter()
        {
            try
            {
                Session entered;
                if (!joining.TryTake(out entered))
                {
                    return;
                }
                Session = entered;
            }
            catch (Exception e)
            {
                // The library is missing, or the server refuses.
                Debug.LogError("volsfu: " + e.Message, this);
            }
            joining = null;
        }

        /// <summary>Raises the events. Handlers may disable the component, which ends the session.</summary>
        void Take()
        {
            SessionEvent e;
            while (Session != null && Session.TryNextEvent(0, out e))
            {
                if (EventReceived != null)
                {
                    EventReceived(e);
                }
            }
            DataMessage message;
            while (Session != null && Session.TryNextMessage(0, out message))
            {
                if (MessageReceived != null)
                {
                    MessageReceived(message);
                }
            }
            for (int i = 0; i < MostFrames && Session != null && Session.TryNextFrame(0, tile); i++)
            {
                if (FrameReceived != null)
                {
                    FrameReceived(tile);
                }
                if (tile != null)
                {
                    tile.Release();
                }
            }
        }
    }
}
