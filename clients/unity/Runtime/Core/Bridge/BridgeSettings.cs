using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Volsfu.Bridge
{
    /// <summary>How the bridge is started and reached.</summary>
    public sealed class BridgeSettings
    {
        /// <summary>The program volbridge. Empty starts none: the bridge is started by others, and only reached.</summary>
        public string Executable = "";
        /// <summary>The server, as host:port, ws://host:port or wss://host:port.</summary>
        public string Server = "localhost:8080";
        /// <summary>The room; empty where the token names it, else the bridge's own default.</summary>
        public string Room = "";
        /// <summary>The participant's name; empty where the token names it, else the bridge's own default. The others' bridges take the number at its end.</summary>
        public string Identity = "";
        /// <summary>An access token, given to the bridge in its environment, not on its command line; empty where the server runs for development.</summary>
        public string Token = "";
        /// <summary>
        /// What the program presents to the bridge, 16 to 128 bytes of UTF-8, so that no other program of this machine is taken for it; given to the bridge in its
        /// environment. Empty presents nothing: the bridge then takes the first program that it hears.
        /// </summary>
        public string Secret = "";
        /// <summary>The bridge's UDP port on this machine; the program has the next one. Two programs on one machine need two pairs.</summary>
        public int Port = 8000;
        /// <summary>The own number, from 1, by which others know this client.</summary>
        public uint Client = 1;
        /// <summary>Tiles and qualities of what is published.</summary>
        public int Tiles = 1, Qualities = 1;
        /// <summary>Whether frames are published, and whether those of others are wanted.</summary>
        public bool Publish = true, Receive = true;
        /// <summary>How much the bridge logs, 0 to 2.</summary>
        public int LogLevel;
        /// <summary>More arguments for the bridge, as its help lists them.</summary>
        public List<string> ExtraArguments = new List<string>();

        internal void Check()
        {
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

        /// <summary>The bridge's arguments, one by one.</summary>
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
        /// One command line that a program takes apart into these arguments again, by the rules that .NET and the Windows runtime share: quotation marks around
        /// what has spaces, backslashes doubled before a quotation mark.
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
