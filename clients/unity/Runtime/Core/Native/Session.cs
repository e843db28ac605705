using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using Volsfu.Signalling;

namespace Volsfu.Native
{
    /// <summary>The settings of a Session. Null and 0 select the defaults of volsfu.h.</summary>
    public sealed class SessionSettings
    {
        /// <summary>The server's address, as ws://host:port or wss://host:port.</summary>
        public string Url { get; set; }

        /// <summary>The room and this participant; null if the token names them.</summary>
        public string Room { get; set; }

        public string Identity { get; set; }
        public string Token { get; set; }

        /// <summary>A passphrase for end-to-end encryption; null for none.</summary>
        public string Passphrase { get; set; }

        /// <summary>Encrypts with the secrets of Session.SetKey.</summary>
        public bool Encrypt { get; set; }

        /// <summary>A PEM file with certificate authorities to trust in place of the system's.</summary>
        public string AuthorityFile { get; set; }

        /// <summary>Receives the publications of others.</summary>
        public bool Receive { get; set; } = true;

        /// <summary>Sends and receives media over TCP alone.</summary>
        public bool Tcp { get; set; }

        /// <summary>At most two network interfaces, the preferred one first, separated by a comma.</summary>
        public string Interfaces { get; set; }

        public long MaxBitrate { get; set; }
        public long MaxUplink { get; set; }
    }

    /// <summary>A tile of a publication, and a quality, the same for all tiles.</summary>
    public struct TileDescription
    {
        public string Label;
        public Box Box;
    }

    public struct QualityDescription
    {
        public string Name;
        public long Bitrate;
    }

    /// <summary>
    /// One participant's presence in a room, by the C library in this process. Any thread may call any method. Errors are
    /// VolsfuException. The calls for each frame allocate nothing: TryNextFrame, ReceivedTile, Publisher.Write, Listener.Read.
    /// There are no callbacks from the library: the program asks for frames, events, messages and sound. A session that is not
    /// disposed stays in its room until the program ends; its publishers and listeners end with it.
    /// </summary>
    public sealed unsafe class Session : IDisposable
    {
        /// <summary>The limits of volsfu.h. Longer arrays would not fit the stack.</summary>
        const int MostRecipients = 64, MostTiles = 256, MostQualities = 64;

        readonly ulong handle;
        readonly Names names = new Names();
        int closed;

        /// <summary>Enters a room. Waits until the server has accepted the participant.</summary>
        public Session(SessionSettings settings)
        {
            Native.CheckVersion();
            fixed (byte* url = Native.Bytes(settings.Url), room = Native.Bytes(settings.Room), identity = Native.Bytes(settings.Identity),
                token = Native.Bytes(settings.Token), passphrase = Native.Bytes(settings.Passphrase), authority = Native.Bytes(settings.AuthorityFile),
                interfaces = Native.Bytes(settings.Interfaces))
            {
                var config = new ConfigStruct
                {
                    Size = (uint)sizeof(ConfigStruct), Url = url, Room = room, Identity = identity, Token = token, Passphrase = passphrase, CaFile = authority,
                    Interfaces = interfaces, MaxBitrate = settings.MaxBitrate, MaxUplink = settings.MaxUplink,
                    Flags = (settings.Receive ? 1u : 0) | (settings.Tcp ? 2u : 0) | (settings.Encrypt ? 8u : 0)
                };
                ulong opened;
                Native.Check(Library.volsfu_connect(&config, &opened));
                handle = opened;
            }
        }

        /// <summary>Leaves the room on a thread of its own, without waiting, as Unity's thread must.</summary>
        public void Leave()
        {
            ThreadPool.QueueUserWorkItem(_ => Dispose());
        }

        /// <summary>Leaves the room, and waits until the connection is closed.</summary>
        public void Dispose()
        {
            if (Interlocked.Exchange(ref closed, 1) == 0)
            {
                Library.volsfu_close(handle);
            }
        }

        /// <summary>
        /// Waits for the next frame, -1 without a limit, and stores the frame in a ReceivedTile, whose last frame is released.
        /// Returns false if no frame arrived in time.
        /// </summary>
        public bool TryNextFrame(int timeoutMilliseconds, ReceivedTile into)
        {
            into.Release();
            int status = Library.volsfu_next_frame(handle, timeoutMilliseconds, into.Frame);
            if (status == VolsfuException.Timeout)
            {
                return false;
            }
            Native.Check(status);
            lock (names)
            {
                into.Participant = names.Of(into.Frame->Participant);
                into.Publication = names.Of(into.Frame->Publication);
            }
            return true;
        }

        /// <summary>Waits for the next event, like TryNextFrame.</summary>
        public bool TryNextEvent(int timeoutMilliseconds, out SessionEvent e)
        {
            e = null;
            var raw = new EventStruct { Size = (uint)sizeof(EventStruct) };
            int status = Library.volsfu_next_event(handle, timeoutMilliseconds, &raw);
            if (status == VolsfuException.Timeout)
            {
                return false;
            }
            Native.Check(status);
            e = new SessionEvent(&raw);
            Library.volsfu_release_event(&raw);
            return true;
        }

        /// <summary>Waits for the next data message, like TryNextFrame.</summary>
        public bool TryNextMessage(int timeoutMilliseconds, out DataMessage message)
        {
            message = null;
            var raw = new MessageStruct { Size = (uint)sizeof(MessageStruct) };
            int status = Library.volsfu_next_message(handle, timeoutMilliseconds, &raw);
            if (status == VolsfuException.Timeout)
            {
                return false;
            }
            Native.Check(status);
            message = new DataMessage(&raw);
            Library.volsfu_release_message(&raw);
            return true;
        }

        /// <summary>
        /// Sends a text to at most 64 participants, or to all others if no participant is named. Waits for the server unless the
        /// message is lossy.
        /// </summary>
        public void SendText(string topic, string text, bool lossy, params string[] to)
        {
            Send(topic, Encoding.UTF8.GetBytes(text), lossy ? 1u : 0, to);
        }

        /// <summary>Sends bytes, like SendText.</summary>
        public void SendBinary(string topic, byte[] data, bool lossy, params string[] to)
        {
            Send(topic, data, 2u | (lossy ? 1u : 0), to);
        }

        void Send(string topic, byte[] data, uint flags, string[] to)
        {
            Limit("recipients", to.Length, MostRecipients);
            using (var texts = new Texts())
            {
                byte** recipients = stackalloc byte*[to.Length];
                for (int i = 0; i < to.Length; i++)
                {
                    recipients[i] = texts.Add(to[i]);
                }
                fixed (byte* payload = data)
                {
                    var message = new OutgoingMessageStruct
                    {
                        Size = (uint)sizeof(OutgoingMessageStruct), Flags = flags, Topic = texts.Add(topic), To = recipients, ToCount = (UIntPtr)to.Length,
                        Data = payload, Length = (UIntPtr)data.Length
                    };
                    Native.Check(Library.volsfu_send_message(handle, &message));
                }
            }
        }

        static void Limit(string of, int length, int most)
        {
            if (length > most)
            {
                throw new ArgumentException(length + " " + of + ", expected at most " + most);
            }
        }

        /// <summary>Publishes an object of 1 to 256 tiles at 1 to 64 ascending qualities.</summary>
        public Publisher Publish(string name, double frameRate, TileDescription[] tiles, QualityDescription[] qualities)
        {
            Limit("tiles", tiles.Length, MostTiles);
            Limit("qualities", qualities.Length, MostQualities);
            using (var texts = new Texts())
            {
                TileStruct* parts = stackalloc TileStruct[tiles.Length];
                for (int i = 0; i < tiles.Length; i++)
                {
                    parts[i] = new TileStruct { Label = texts.Add(tiles[i].Label), Box = tiles[i].Box.Struct() };
                }
                QualityStruct* levels = stackalloc QualityStruct[qualities.Length];
                for (int i = 0; i < qualities.Length; i++)
                {
                    levels[i] = new QualityStruct { Name = texts.Add(qualities[i].Name), Bitrate = qualities[i].Bitrate };
                }
                var publication = new PublicationStruct
                {
                    Size = (uint)sizeof(PublicationStruct), Name = texts.Add(name), FrameRate = frameRate, Tiles = parts, Qualities = levels,
                    TileCount = (uint)tiles.Length, QualityCount = (uint)qualities.Length
                };
                ulong publisher;
                Native.Check(Library.volsfu_publish(handle, &publication, &publisher));
                return new Publisher(publisher);
            }
        }

        /// <summary>Publishes sound, of a bit rate in bit/s or 0 for the default.</summary>
        public SoundPublisher PublishSound(string name, int bitrate)
        {
            fixed (byte* text = Native.Bytes(name))
            {
                var sound = new SoundStruct { Size = (uint)sizeof(SoundStruct), Bitrate = (uint)bitrate, Name = text };
                ulong publisher;
                Native.Check(Library.volsfu_publish_sound(handle, &sound, &publisher));
                return new SoundPublisher(publisher);
            }
        }

        /// <summary>Decodes the sound of a publication, which may begin later.</summary>
        public Listener Listen(string participant, string publication)
        {
            fixed (byte* of = Native.Bytes(participant), name = Native.Bytes(publication))
            {
                ulong listener;
                Native.Check(Library.volsfu_listen(handle, of, name, &listener));
                return new Listener(listener);
            }
        }

        /// <summary>Chooses a quality of a publication for a tile, or for all with -1: a number, -1 for off, -2 for the server's choice.</summary>
        public void SetQuality(string participant, string publication, int tile, int quality)
        {
            fixed (byte* of = Native.Bytes(participant), name = Native.Bytes(publication))
            {
                var choice = new ChoiceStruct { Participant = of, Publication = name, Tile = tile, Quality = quality };
                Native.Check(Library.volsfu_set_quality(handle, &choice, (UIntPtr)1));
            }
        }

        /// <summary>
        /// Sends the viewpoint in the room's coordinates; Coordinates converts those of Unity. The vertical angle of view is in
        /// radians.
        /// </summary>
        public void SetViewpoint(double[] position, double[] orientation, double angle, double aspect)
        {
            var viewpoint = new ViewpointStruct { Size = (uint)sizeof(ViewpointStruct), Fov = angle, Aspect = aspect };
            for (int i = 0; i < 3; i++)
            {
                viewpoint.Position[i] = position[i];
            }
            for (int i = 0; i < 4; i++)
            {
                viewpoint.Orientation[i] = orientation[i];
            }
            Native.Check(Library.volsfu_set_viewpoint(handle, &viewpoint));
        }

        /// <summary>Limits the received rate in bit/s, 0 for no limit.</summary>
        public void SetLimits(long most, long least)
        {
            Native.Check(Library.volsfu_set_limits(handle, most, least));
        }

        /// <summary>Changes attributes of this participant by a JSON object of texts.</summary>
        public void SetAttributes(string json)
        {
            fixed (byte* text = Native.Bytes(json))
            {
                Native.Check(Library.volsfu_set_attributes(handle, null, text));
            }
        }

        /// <summary>Sets the secret of an epoch, of all participants or of one.</summary>
        public void SetKey(int epoch, byte[] secret, string identity = null)
        {
            fixed (byte* of = Native.Bytes(identity), key = secret)
            {
                Native.Check(Library.volsfu_set_key(handle, (uint)epoch, of, key, (UIntPtr)secret.Length));
            }
        }

        public void UseEpoch(int epoch)
        {
            Native.Check(Library.volsfu_use_epoch(handle, (uint)epoch));
        }

        public void ForgetEpoch(int epoch)
        {
            Native.Check(Library.volsfu_forget_epoch(handle, (uint)epoch));
        }

        /// <summary>The present time of the server's clock, in microseconds since 1970.</summary>
        public long ServerTime()
        {
            long now;
            Native.Check(Library.volsfu_server_time(handle, 0, &now));
            return now;
        }

        /// <summary>The participants and their publications as JSON.</summary>
        public string Room()
        {
            return Native.Read((buffer, capacity, length) => Library.volsfu_get_room(handle, buffer, capacity, length));
        }

        /// <summary>The participants and their publications.</summary>
        public List<Participant> Participants()
        {
            return ServerMessages.Participants(JsonReading.Parse(Room()));
        }

        /// <summary>The counts of the session as JSON, as volsfu_get_statistics in volsfu.h.</summary>
        public string Statistics()
        {
            return Native.Read((buffer, capacity, length) => Library.volsfu_get_statistics(handle, buffer, capacity, length));
        }
    }

    /// <summary>Texts in memory that does not move, until Dispose.</summary>
    sealed unsafe class Texts : IDisposable
    {
        readonly List<GCHandle> pins = new List<GCHandle>();

        internal byte* Add(string text)
        {
            if (text == null)
            {
                return null;
            }
            GCHandle pin = GCHandle.Alloc(Native.Bytes(text), GCHandleType.Pinned);
            pins.Add(pin);
            return (byte*)pin.AddrOfPinnedObject();
        }

        public void Dispose()
        {
            foreach (GCHandle pin in pins)
            {
                pin.Free();
            }
        }
    }
}
