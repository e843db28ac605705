using System;

namespace Volsfu.Signalling
{
    /// <summary>The address of a server: ws://host:port or wss://host:port.</summary>
    static class Address
    {
        /// <summary>Reports whether a text is the address of a server.</summary>
        internal static bool TryParse(string server, out Uri address)
        {
            return Uri.TryCreate(server, UriKind.Absolute, out address) && (address.Scheme == "ws" || address.Scheme == "wss") && address.Host != "";
        }

        /// <summary>Returns the address, or throws ProtocolException.</summary>
        internal static Uri Check(string server)
        {
            Uri address;
            if (!TryParse(server, out address))
            {
                throw new ProtocolException("server: expected ws://host:port or wss://host:port");
            }
            return address;
        }

        /// <summary>The address of signalling at a server.</summary>
        internal static Uri Signal(string server) { return new UriBuilder(server) { Path = "/v1/signal", Query = "" }.Uri; }
    }
}
