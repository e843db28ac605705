using System;
using System.Net;
using System.Net.Sockets;

namespace Volsfu.Bridge
{
    /// <summary>
    /// The program's UDP socket on loopback, next to the bridge's port. One thread may send while another receives.
    /// </summary>
    sealed class BridgeSocket : IDisposable
    {
        /// <summary>The requested buffer size for bursts; systems may limit it.</summary>
        const int buffer = 8 << 20;
        /// <summary>The maximum wait for a datagram, in milliseconds.</summary>
        const int patience = 50;
        /// <summary>
        /// SIO_UDP_CONNRESET: on Windows, a datagram to a port without a listener would otherwise fail the next
        /// receive.
        /// </summary>
        const int ignoreResets = -1744830452;

        readonly Socket socket;
        readonly IPEndPoint bridge;
        EndPoint from = new IPEndPoint(IPAddress.Any, 0);

        internal BridgeSocket(int port)
        {
            bridge = new IPEndPoint(IPAddress.Loopback, port);
            socket = new Socket(AddressFamily.InterNetwork, SocketType.Dgram, ProtocolType.Udp);
            try
            {
                if (Environment.OSVersion.Platform == PlatformID.Win32NT)
                {
                    socket.IOControl(ignoreResets, new byte[4], null);
                    socket.ExclusiveAddressUse = true;
                }
                else
                {
                    // Mono shares ports by default: a second program would receive the first one's datagrams without
                    // any error.
                    socket.SetSocketOption(SocketOptionLevel.Socket, SocketOptionName.ReuseAddress, false);
                }
                socket.ReceiveBufferSize = buffer;
                socket.SendBufferSize = buffer;
                socket.ReceiveTimeout = patience;
                socket.Bind(new IPEndPoint(IPAddress.Loopback, port + 1));
            }
            catch (SocketException e)
            {
                socket.Close();
                throw new BridgeException("UDP port " + (port + 1) + " of 127.0.0.1 cannot be used: " + e.Message, e);
            }
        }

        /// <summary>Sends one datagram of Datagram.Size bytes; returns false if the system rejects it.</summary>
        internal bool Send(byte[] datagram)
        {
            try
            {
                return socket.SendTo(datagram, 0, Datagram.Size, SocketFlags.None, bridge) == Datagram.Size;
            }
            catch (SocketException)
            {
                return false;
            }
        }

        /// <summary>
        /// Waits briefly for a datagram. Returns its length, or -1 if none arrived; foreign is true if it is not from
        /// the bridge.
        /// </summary>
        internal int Receive(byte[] datagram, out bool foreign)
        {
            foreign = false;
            try
            {
                int count = socket.ReceiveFrom(datagram, ref from);
                foreign = !bridge.Equals(from);
                return count;
            }
            catch (SocketException)
            {
                return -1;
            }
        }

        /// <summary>Closes the socket. The receiving thread must have ended before.</summary>
        public void Dispose()
        {
            socket.Close();
        }
    }
}
