using System;

namespace Volsfu.Signalling
{
    /// <summary>The address of a server: ws://host:port or wss://host:port.</summary>
    static class Address
    {
        /// <summary>Returns the address, or throws ProtocolException.</summary>
        internal static string Check(string server)
        {
            Uri address;
            if (!Uri.TryCreate(server, UriKind.Absolute, out address) || (address.Scheme != "ws" && address.Scheme != "wss") || address.Host == "")
            {
                throw new ProtocolException("server: expected ws://host:port or wss://host:port");
            }
            return server;
        }

        /// <summary>The address of signalling at a server.</summary>
        internal static Uri Signal(string server) { return new UriBuilder(server) { Path = "/v1/signal", Query = "" }.Uri; }
    }
}
