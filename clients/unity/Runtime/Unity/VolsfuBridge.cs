using System;
using System.Collections.Generic;
using System.IO;
using UnityEngine;
using Volsfu.Bridge;

namespace Volsfu.Unity
{
    /// <summary>
    /// The scene's bridge to a volsfu server: it runs volbridge while it is enabled, and passes received frames to the
    /// VolsfuReceivers. There is one per program, or one per pair of ports.
    /// </summary>
    [AddComponentMenu("Volsfu/Bridge")]
    public sealed class VolsfuBridge : MonoBehaviour
    {
        [Tooltip("The program volbridge. A path that does not begin at the root is looked for in StreamingAssets; .exe is added on Windows. Empty: it is started by others.")]
        public string executable = "volbridge";
        [Tooltip("host:port, ws://host:port or wss://host:port")]
        public string server = "localhost:8080";
        public string room = "lab";
        [Tooltip("Must end with the client number, as in ada-1, so that others see the same number.")]
        public string identity = "";
        [Tooltip("Access token; empty for servers that run with --dev.")]
        public string token = "";
        [Tooltip("The secret that authenticates this program to the bridge against other programs of this machine, 16 to 128 bytes. Empty: none.")]
        public string secret = "";
        [Tooltip("Passphrase of the room for end-to-end encryption; all participants need the same. Empty: none.")]
        public string passphrase = "";
        [Tooltip("Encrypt from end to end with the keys of SetKey. A passphrase implies this.")]
        public bool encrypt;
        [Tooltip("UDP port of the bridge on this machine; the next one is also used.")]
        public int port = 8000;
        [Tooltip("This client's number, from 1; unique in the room.")]
        public int client = 1;
        [Range(1, 256)] public int tiles = 1;
        [Range(1, 64)] public int qualities = 1;
        [Tooltip("Network interfaces for media, at most two, the preferred one first, such as wlan0 and wwan0. Empty: the system chooses.")]
        public List<string> interfaces = new List<string>();
        [Tooltip("The packets that are sent on two interfaces: the ones that matter most, none, or all.")]
        public Redundancy redundancy = Redundancy.Auto;
        public bool publish = true;
        public bool receive = true;

        readonly Dictionary<uint, List<VolsfuReceiver>> receivers = new Dictionary<uint, List<VolsfuReceiver>>();

        /// <summary>The core's client; null while the component is disabled, or could not start.</summary>
        public BridgeClient Client { get; private set; }

        /// <summary>Whether frames can be exchanged.</summary>
        public bool IsReady { get { return Client != null && Client.IsReady; } }

        /// <summary>Received sound: the publisher's number, and the frame, which is valid until the handlers return.</summary>
        public event Action<uint, ReceivedFrame> SoundReceived;

        void OnEnable()
        {
            try
            {
                Client = new BridgeClient(Settings());
            }
            catch (Exception e) when (e is BridgeException || e is ProtocolException)
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
            if (Client == null)
            {
                return;
            }
            BridgeEvent happened;
            while (Client.TryTakeEvent(out happened))
            {
                Tell(happened);
            }
            ReceivedFrame frame;
            while (Client.TryReceive(out frame))
            {
                Give(frame);
                frame.Release();
            }
        }

        internal void Register(VolsfuReceiver receiver)
        {
            List<VolsfuReceiver> list;
            if (!receivers.TryGetValue((uint)receiver.client, out list))
            {
                list = receivers[(uint)receiver.client] = new List<VolsfuReceiver>();
            }
            list.Add(receiver);
        }

        internal void Unregister(VolsfuReceiver receiver)
        {
            foreach (List<VolsfuReceiver> list in receivers.Values)
            {
                list.Remove(receiver);
            }
        }

        BridgeSettings Settings()
        {
            return new BridgeSettings
            {
                Executable = ExecutablePath(), Server = server, Room = room, Identity = identity, Token = token, Secret = secret, Passphrase = passphrase, Encrypt = encrypt, Port = port, Client = (uint)client, Tiles = tiles,
                Qualities = qualities, Publish = publish, Receive = receive, Interfaces = new List<string>(interfaces), Redundancy = redundancy
            };
        }

        string ExecutablePath()
        {
            if (executable == "")
            {
                return "";
            }
            bool windows = Application.platform == RuntimePlatform.WindowsPlayer || Application.platform == RuntimePlatform.WindowsEditor;
            string name = windows && !executable.EndsWith(".exe", StringComparison.OrdinalIgnoreCase) ? executable + ".exe" : executable;
            return Path.IsPathRooted(name) ? name : Path.Combine(Application.streamingAssetsPath, name);
        }

        void Tell(BridgeEvent happened)
        {
            string text = "volsfu bridge: " + happened.Kind + " " + happened.Text;
            if (happened.Kind == BridgeEventKind.Ended || happened.Kind == BridgeEventKind.NotStarted)
            {
                Debug.LogWarning(text, this);
            }
            else
            {
                Debug.Log(text, this);
            }
        }

        void Give(ReceivedFrame frame)
        {
            if (frame.Audio)
            {
                if (SoundReceived != null)
                {
                    SoundReceived(frame.Client, frame);
                }
                return;
            }
            List<VolsfuReceiver> list;
            if (receivers.TryGetValue(frame.Client, out list))
            {
                // Handlers may disable receivers, which removes them from the list.
                for (int i = list.Count - 1; i >= 0; i = Math.Min(i, list.Count) - 1)
                {
                    list[i].Take(frame);
                }
            }
        }
    }
}
