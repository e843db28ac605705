using System;
using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>How a client comes into a room.</summary>
    public sealed class JoinSettings
    {
        /// <summary>The server, as ws://host:port or wss://host:port.</summary>
        public string Server = "ws://127.0.0.1:8080";
        /// <summary>An access token; empty where the server runs for development. It is sent in a header and never written to a log.</summary>
        public string Token = "";
        /// <summary>The room; may be empty where the token names it.</summary>
        public string Room = "";
        /// <summary>The own identity; may be empty where the token names it.</summary>
        public string Identity = "";
        /// <summary>
        /// Whether media of others is wanted, which takes a peer connection of the program's own that answers offers. Where volbridge carries the media, this
        /// client is a second participant that only looks on: false, and no publications.
        /// </summary>
        public bool Receive;
        /// <summary>How long after its first packet a frame is repaired, 20 to 2000 ms; 0 is the server's default.</summary>
        public int DeadlineMilliseconds;
        /// <summary>What this client is to be sent at most, in bit/s; 0 is no limit.</summary>
        public long MaxBitrate;
        /// <summary>What this client's link is believed to carry, in bit/s: what the server begins with until it has measured it; 0 is the server's own start rate.</summary>
        public long StartBitrate;
        /// <summary>What is published from the beginning.</summary>
        public List<Publication> Publications = new List<Publication>();
        /// <summary>Whether resuming asks for a new peer connection; false where the program's own outlives a broken websocket.</summary>
        public bool NewConnectionOnResume;

        internal void Check()
        {
            Uri address;
            if (!Uri.TryCreate(Server, UriKind.Absolute, out address) || (address.Scheme != "ws" && address.Scheme != "wss") || address.Host == "")
            {
                throw new ProtocolException("server: expected ws://host:port or wss://host:port");
            }
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

        /// <summary>Where the websocket is opened.</summary>
        internal Uri SignalAddress { get { return new UriBuilder(Server) { Path = "/v1/signal", Query = "" }.Uri; } }
    }
}
