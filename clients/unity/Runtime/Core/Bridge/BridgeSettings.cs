using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Volsfu.Bridge
{
    /// <summary>The packets that are sent on two network interfaces.</summary>
    public enum Redundancy
    {
        /// <summary>The packets that matter most; everything while the first interface fails.</summary>
        Auto,
        /// <summary>None: the second interface is used only after the first has failed.</summary>
        Off,
        /// <summary>Everything that the second interface carries. Two interfaces are required.</summary>
        All
    }

    /// <summary>Settings for starting and reaching the bridge.</summary>
    public sealed class BridgeSettings
    {
        /// <summary>The program volbridge. If empty, the bridge is started externally, and only reached.</summary>
        public string Executable = "";
        /// <summary>The server, as host:port, ws://host:port or wss://host:port.</summary>
        public string Server = "localhost:8080";
        /// <summary>The room; if empty, that of the token, or else the bridge's own default.</summary>
        public string Room = "";
        /// <summary>
        /// The participant's name; if empty, that of the token, or else the bridge's own default. The bridges of others
        /// use the number at its end.
        /// </summary>
        public string Identity = "";
        /// <summary>
        /// An access token, passed to the bridge in its environment, not on its command line; empty for servers in
        /// development mode.
        /// </summary>
        public string Token = "";
        /// <summary>
        /// The secret that authenticates the program to the bridge against other programs of this machine, 16 to 128
        /// bytes of UTF-8; passed to the bridge in its environment. If empty, the bridge accepts the first program that
        /// sends a datagram.
        /// </summary>
        public string Secret = "";
        /// <summary>
        /// Whether everything published is encrypted from end to end, and unencrypted publications of others are refused.
        /// The keys come from the passphrase and from BridgeClient.SetKey. Points must be cwi0, and sound VR2A, since the
        /// bridge then converts them to Draco and Opus.
        /// </summary>
        public bool Encrypt;
        /// <summary>
        /// The passphrase of the room for end-to-end encryption, passed to the bridge in its environment. If empty, there
        /// is no key before BridgeClient.SetKey. It implies Encrypt.
        /// </summary>
        public string Passphrase = "";
        /// <summary>
        /// The bridge's UDP port on this machine; the program has the next one. Two programs on one machine need two
        /// pairs.
        /// </summary>
        public int Port = 8000;
        /// <summary>The own number, from 1, which identifies this client for others.</summary>
        public uint Client = 1;
        /// <summary>The numbers of published tiles and qualities.</summary>
        public int Tiles = 1, Qualities = 1;
        /// <summary>Whether frames are published, and whether those of others are received.</summary>
        public bool Publish = true, Receive = true;
        /// <summary>
        /// The network interfaces for media, at most two, the preferred one first, such as wlan0 and wwan0; if empty, the
        /// system chooses. If the first fails, the second takes over.
        /// </summary>
        public List<string> Interfaces = new List<string>();
        /// <summary>The packets that are sent on two interfaces, in both directions.</summary>
        public Redundancy Redundancy = Redundancy.Auto;
        /// <summary>The log level of the bridge, 0 to 2.</summary>
        public int LogLevel;
        /// <summary>Additional arguments for the bridge, as listed by its help.</summary>
        public List<string> ExtraArguments = new List<string>();

        /// <summary>The most network interfaces that a bridge uses.</summary>
        public const int MaxInterfaces = 2;

        internal bool Encrypts { get { return Encrypt || !string.IsNullOrEmpty(Passphrase); } }

        internal void Check()
        {
            if (Encrypts && string.IsNullOrEmpty(Executable))
            {
                throw new ProtocolException("bridge: encryption requires the path of volbridge in Executable, because a bridge that others have started takes no keys from this program");
            }
            CheckInterfaces();
            int bytes = Encoding.UTF8.GetByteCount(Secret ?? "");
            if (bytes != 0 && (bytes < Datagram.MinSecret || bytes > Datagram.MaxSecret))
            {
                throw new ProtocolException("bridge: a secret of " + bytes + " bytes, expected " + Datagram.MinSecret + " to " + Datagram.MaxSecret + ", or none");
            }
            if (Port < 1 || Port > 65534 || Tiles < 1 || Tiles > 256 || Qualities < 1 || Qualities > 64 || string.IsNullOrEmpty(Server))
            {
                throw new ProtocolException("bridge: expected a server, a port of 1 to 65534, 1 to 256 tiles and 1 to 64 qualities");
            }
        }

        void CheckInterfaces()
        {
            int count = Interfaces == null ? 0 : Interfaces.Count;
            if (count > MaxInterfaces || Redundancy == Redundancy.All && count < MaxInterfaces)
            {
                throw new ProtocolException("bridge: " + count + " network interfaces, expected at most " + MaxInterfaces + ", and exactly " + MaxInterfaces + " with Redundancy.All");
            }
            for (int i = 0; i < count; i++)
            {
                string name = Interfaces[i];
                if (string.IsNullOrEmpty(name) || name.IndexOf(',') >= 0 || Interfaces.IndexOf(name) != i)
                {
                    throw new ProtocolException("bridge: the network interface \"" + name + "\", expected a name without a comma, and each name once");
                }
            }
        }

        /// <summary>Returns the bridge's arguments.</summary>
        public List<string> Arguments()
        {
            var arguments = new List<string>
            {
                "--sfu", Server, "-p", ":" + Number(Port), "-c", Client.ToString(CultureInfo.InvariantCulture), "-t", Number(Tiles), "-q", Number(Qualities),
                "-l", Number(LogLevel)
            };
            if (Publish)
            {
                arguments.Add("-i");
            }
            if (Receive)
            {
                arguments.Add("-o");
            }
            AddNamed(arguments, "--room", Room);
            AddNamed(arguments, "--identity", Identity);
            if (Interfaces != null && Interfaces.Count > 0)
            {
                AddNamed(arguments, "--interfaces", string.Join(",", Interfaces));
                AddNamed(arguments, "--redundancy", Redundancy.ToString().ToLowerInvariant());
            }
            if (Encrypts)
            {
                arguments.Add("--transcode");
                arguments.Add("--e2ee-stdin");
            }
            arguments.AddRange(ExtraArguments);
            return arguments;
        }

        static void AddNamed(List<string> arguments, string name, string value)
        {
            if (!string.IsNullOrEmpty(value))
            {
                arguments.Add(name);
                arguments.Add(value);
            }
        }

        static string Number(int number)
        {
            return number.ToString(CultureInfo.InvariantCulture);
        }

        /// <summary>
        /// Returns a command line that a program splits into these arguments, by the common rules of .NET and the
        /// Windows runtime: quotation marks around arguments with spaces, doubled backslashes before a quotation mark.
        /// </summary>
        public static string CommandLine(IEnumerable<string> arguments)
        {
            var line = new StringBuilder();
            foreach (string argument in arguments)
            {
                if (line.Length > 0)
                {
                    line.Append(' ');
                }
                AppendQuoted(line, argument);
            }
            return line.ToString();
        }

        static void AppendQuoted(StringBuilder line, string argument)
        {
            if (argument.IndexOf('\0') >= 0)
            {
                throw new ProtocolException("bridge: an argument has a zero in it");
            }
            if (argument != "" && argument.IndexOfAny(new[] { ' ', '\t', '\n', '\v', '"', '\'', '\\' }) < 0)
            {
                line.Append(argument);
                return;
            }
            line.Append('"');
            int backslashes = 0;
            foreach (char c in argument)
            {
                if (c == '\\')
                {
                    backslashes++;
                    continue;
                }
                line.Append('\\', c == '"' ? backslashes * 2 + 1 : backslashes).Append(c);
                backslashes = 0;
            }
            line.Append('\\', backslashes * 2).Append('"');
        }
    }
}
