using System;
using System.Diagnostics;
using System.Threading;
using Volsfu.Signalling;

namespace Volsfu.Bridge
{
    /// <summary>
    /// A program's connection to volbridge. It starts the executable, restarts it when it ends, sends frames to it
    /// for publication, and receives those of others. All methods may be called from any thread and do not wait for the
    /// network. The client has two threads, one for sending and one for receiving; TryReceive and TryTakeEvent return
    /// the results, for instance once per drawn image.
    /// </summary>
    public sealed class BridgeClient : IDisposable
    {
        readonly object gate = new object();
        readonly BridgeSettings settings;
        readonly BridgeSocket socket;
        readonly BridgeProcess process;
        readonly Handshake handshake = new Handshake();
        readonly FrameAssembler assembler = new FrameAssembler();
        readonly SendQueue sending;
        readonly KeyBook keys = new KeyBook();
        readonly Inbox inbox = new Inbox();
        readonly AutoResetEvent wake = new AutoResetEvent(false);
        readonly Stopwatch clock = Stopwatch.StartNew();
        readonly Thread sender, receiver;
        readonly SendPace pace = new SendPace();
        BridgeCounts counts;
        /// <summary>Data received before this time was sent by a bridge that has ended.</summary>
        long deafUntil;
        volatile bool stopping;
        bool disposed;

        /// <summary>
        /// Opens the socket and starts the executable. Throws BridgeException if the port is in use, ProtocolException
        /// for settings out of bounds.
        /// </summary>
        public BridgeClient(BridgeSettings settings)
        {
            settings.Check();
            this.settings = settings;
            sending = new SendQueue(settings.Client, settings.Tiles, settings.Qualities);
            socket = new BridgeSocket(settings.Port);
            process = string.IsNullOrEmpty(settings.Executable) ? null : new BridgeProcess(settings, keys, gate, Tell);
            sender = new Thread(SendLoop) { IsBackground = true, Name = "volsfu bridge, sending" };
            receiver = new Thread(ReceiveLoop) { IsBackground = true, Name = "volsfu bridge, receiving" };
            sender.Start();
            receiver.Start();
        }

        /// <summary>Whether a datagram of the bridge has arrived: earlier frames are not passed on.</summary>
        public bool IsReady { get { lock (gate) { return handshake.IsReady; } } }

        /// <summary>The counts so far.</summary>
        public BridgeCounts Counts
        {
            get
            {
                lock (gate)
                {
                    BridgeCounts copy = counts;
                    copy.Assembly = assembler.Counts;
                    copy.FramesNotSent += sending.Dropped;
                    copy.FramesNotTaken = inbox.Dropped;
                    return copy;
                }
            }
        }

        /// <summary>
        /// Publishes a frame of a tile at a quality. It begins with a FrameHeader and is not copied: it must remain
        /// unchanged. The number increases with each capture; frames of one capture have the same time in their
        /// headers. A waiting frame is dropped when a newer one of its tile and quality arrives.
        /// </summary>
        public void SendTile(int tile, int quality, uint number, byte[] frame)
        {
            lock (gate)
            {
                sending.AddTile(tile, quality, number, frame);
                DropIfAlone();
            }
            wake.Set();
        }

        /// <summary>Publishes a frame of sound, which begins with a FrameHeader and is not copied.</summary>
        public void SendAudio(byte[] frame)
        {
            lock (gate)
            {
                sending.AddAudio(frame);
                DropIfAlone();
            }
            wake.Set();
        }

        /// <summary>
        /// Chooses the quality of each tile of a publisher, in the order of the tiles: -1 is off, ChoiceText.Keep keeps
        /// a tile unchanged. Client 0 means every publisher with that number of tiles. Without a choice, the server
        /// decides. Choices are sent again to a restarted bridge.
        /// </summary>
        public void ChooseQualities(uint client, params int[] qualities)
        {
            lock (gate)
            {
                sending.Choose(client, qualities);
                DropIfAlone();
            }
            wake.Set();
        }

        /// <summary>
        /// Sets the viewpoint of the program in the room's coordinates: for tiles without a choice, the server prefers
        /// visible ones. It may be called for every drawn image, and remains in force. Throws ProtocolException for an
        /// invalid viewpoint.
        /// </summary>
        public void SetViewpoint(Viewpoint viewpoint)
        {
            lock (gate)
            {
                sending.Scene.Look(viewpoint);
                DropIfAlone();
            }
            wake.Set();
        }

        /// <summary>
        /// Sets the pose of the published object in the room's coordinates, and the boxes of its tiles in its own, one
        /// for each tile; without boxes, the previous ones remain. It remains in force. Its priority is not passed on.
        /// Throws ProtocolException for an invalid pose.
        /// </summary>
        public void SetPose(ObjectPose pose, params Tile[] boxes)
        {
            lock (gate)
            {
                sending.Scene.Place(pose, boxes);
                DropIfAlone();
            }
            wake.Set();
        }

        /// <summary>
        /// Sets a secret of 16 to 64 bytes for end-to-end encryption in an epoch of 0 to 65535: of all participants, or of
        /// one. Frames of the epoch can then be decrypted; the first secret is also used for sending. Throws
        /// ProtocolException for values out of bounds, and without BridgeSettings.Encrypt.
        /// </summary>
        public void SetKey(int epoch, byte[] secret, string identity = null)
        {
            ChangeKeys(() => keys.Set(epoch, secret, identity));
        }

        /// <summary>Encrypts with the secrets of an epoch, which must have been set.</summary>
        public void UseEpoch(int epoch)
        {
            ChangeKeys(() => keys.Use(epoch));
        }

        /// <summary>Removes the secrets of an epoch, also that of the passphrase, which is epoch 0: frames of the epoch are refused.</summary>
        public void ForgetEpoch(int epoch)
        {
            ChangeKeys(() => keys.Forget(epoch));
        }

        void ChangeKeys(Action change)
        {
            if (!settings.Encrypts)
            {
                throw new ProtocolException("bridge: keys without encryption; set BridgeSettings.Encrypt");
            }
            lock (gate)
            {
                change();
            }
            wake.Set();
        }

        /// <summary>Returns the oldest received frame that was not yet taken. Call its Release after decoding.</summary>
        public bool TryReceive(out ReceivedFrame frame)
        {
            lock (gate)
            {
                return inbox.TryTake(out frame);
            }
        }

        /// <summary>Returns the oldest event that was not yet taken.</summary>
        public bool TryTakeEvent(out BridgeEvent taken)
        {
            lock (gate)
            {
                return inbox.TryTake(out taken);
            }
        }

        /// <summary>Ends the executable and both threads, and frees the port.</summary>
        public void Dispose()
        {
            lock (gate)
            {
                if (disposed)
                {
                    return;
                }
                disposed = true;
            }
            stopping = true;
            wake.Set();
            sender.Join();
            receiver.Join();
            if (process != null)
            {
                process.Stop();
            }
            socket.Dispose();
        }

        void DropIfAlone()
        {
            if (!handshake.IsReady)
            {
                sending.Clear();
            }
        }

        void SendLoop()
        {
            var datagram = new byte[Datagram.Size];
            while (!stopping)
            {
                long now = clock.ElapsedMilliseconds;
                Supervise(now, datagram);
                bool more = SendSome(datagram);
                wake.WaitOne(more ? 1 : 10);
            }
        }

        void Supervise(long now, byte[] datagram)
        {
            if (process != null && process.Step(now, IsReady))
            {
                lock (gate)
                {
                    handshake.Reset();
                    assembler.Reset();
                    sending.Clear();
                    deafUntil = now + RestartPolicy.FirstWait / 2;
                }
            }
            bool ready;
            lock (gate)
            {
                assembler.Expire(now);
                ready = handshake.TakeReady(now);
            }
            if (ready)
            {
                if (string.IsNullOrEmpty(settings.Secret))
                {
                    Datagram.WriteReady(datagram);
                }
                else
                {
                    Datagram.WriteSecret(datagram, settings.Secret);
                }
                socket.Send(datagram);
            }
        }

        /// <summary>Sends as much as the pace allows, and returns whether more is waiting.</summary>
        bool SendSome(byte[] datagram)
        {
            long now = clock.ElapsedTicks * 1000000 / Stopwatch.Frequency;
            for (int left = pace.Available(now); left > 0; left--)
            {
                lock (gate)
                {
                    if (!sending.Next(datagram))
                    {
                        return false;
                    }
                }
                bool sent = socket.Send(datagram);
                pace.Spend(1);
                lock (gate)
                {
                    counts.DatagramsSent += sent ? 1 : 0;
                    counts.SendErrors += sent ? 0 : 1;
                }
            }
            lock (gate)
            {
                return !sending.IsEmpty;
            }
        }

        void ReceiveLoop()
        {
            var datagram = new byte[Datagram.MaxSize + 1];
            while (!stopping)
            {
                bool foreign;
                int count = socket.Receive(datagram, out foreign);
                if (count < 0)
                {
                    continue;
                }
                lock (gate)
                {
                    Take(datagram, count, foreign);
                }
            }
        }

        void Take(byte[] datagram, int count, bool foreign)
        {
            DatagramType type;
            Packet packet = new Packet();
            counts.DatagramsReceived++;
            if (foreign)
            {
                counts.Foreign++;
                return;
            }
            bool known = Datagram.TryReadType(datagram, count, out type);
            bool media = known && (type == DatagramType.Tile || type == DatagramType.Audio);
            if (!known || (media && !Datagram.TryReadPacket(datagram, count, type == DatagramType.Audio, out packet)))
            {
                counts.Malformed++;
                return;
            }
            if (clock.ElapsedMilliseconds < deafUntil)
            {
                return;
            }
            if (!handshake.IsReady)
            {
                Tell(BridgeEventKind.Ready, settings.Server);
                sending.Remind();
            }
            handshake.Heard(type);
            if (!media)
            {
                wake.Set();
                return;
            }
            ReceivedFrame frame = assembler.Push(ref packet, clock.ElapsedMilliseconds);
            if (frame != null)
            {
                inbox.Put(frame);
            }
        }

        void Tell(BridgeEventKind kind, string text)
        {
            lock (gate)
            {
                counts.Starts += kind == BridgeEventKind.Started ? 1 : 0;
                inbox.Put(new BridgeEvent { Kind = kind, Text = text });
            }
        }
    }
}
