using System;
using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>Settings for joining a room.</summary>
    public sealed class JoinSettings
    {
        /// <summary>The server, as ws://host:port or wss://host:port.</summary>
        public string Server = "ws://127.0.0.1:8080";
        /// <summary>An access token; empty for servers in development mode. It is sent in a header and never logged.</summary>
        public string Token = "";
        /// <summary>The room; may be empty if the token contains it.</summary>
        public string Room = "";
        /// <summary>The own identity; may be empty if the token contains it.</summary>
        public string Identity = "";
        /// <summary>
        /// Whether media of others is requested, which requires a peer connection of the program that answers offers.
        /// If volbridge carries the media, this client is a second participant that only observes: false, and no
        /// publications.
        /// </summary>
        public bool Receive;
        /// <summary>The time for repairs of a frame after its first packet, 20 to 2000 ms; 0 is the server's default.</summary>
        public int DeadlineMilliseconds;
        /// <summary>The maximum bit rate for this client, in bit/s; 0 is no limit.</summary>
        public long MaxBitrate;
        /// <summary>
        /// The assumed capacity of this client's link in bit/s until the server has measured it; 0 is the server's own
        /// start rate.
        /// </summary>
        public long StartBitrate;
        /// <summary>The initial publications.</summary>
        public List<Publication> Publications = new List<Publication>();
        /// <summary>
        /// Whether resuming requests a new peer connection; false if the program's own survives a broken websocket.
        /// </summary>
        public bool NewConnectionOnResume;
        /// <summary>
        /// Whether the program keeps two peer connections during a move to another server, so that no frame is lost: see
        /// Joined.Former.
        /// </summary>
        public bool MakeBeforeBreak;

        internal void Check()
        {
            Address.Check(Server);
            Checks.OptionalName("room", Room);
            Checks.OptionalName("participant", Identity);
            Checks.Range("bitrate", MaxBitrate, 0, Limits.Bitrate);
            Checks.Range("start bitrate", StartBitrate, 0, MaxBitrate == 0 ? Limits.Bitrate : MaxBitrate);
            Checks.Range("publications", Publications.Count, 0, Limits.Publications);
            if (DeadlineMilliseconds != 0)
            {
                Checks.Range("deadline", DeadlineMilliseconds, 20, 2000);
            }
        }
    }
}
