using System;
using System.Text;

namespace Volsfu.Native
{
    /// <summary>An error of the library. Status is one of the VOLSFU_E and VOLSFU_REFUSED numbers of volsfu.h.</summary>
    public sealed class VolsfuException : Exception
    {
        public const int Handle = -3, Buffer = -9, Codec = -12, Malformed = -13, Timeout = -20, Closed = -21, Lost = -22, NotConnected = -23;

        internal VolsfuException(int status, string message) : base(message)
        {
            Status = status;
        }

        public int Status { get; }
    }

    /// <summary>Calls and texts of the library.</summary>
    static unsafe class Native
    {
        /// <summary>Returns a status of 0 or above, and throws the error of another status.</summary>
        internal static int Check(int status)
        {
            if (status < 0)
            {
                throw new VolsfuException(status, Text(Library.volsfu_last_message()));
            }
            return status;
        }

        /// <summary>Throws if the library has other structs than these declarations.</summary>
        internal static void CheckVersion()
        {
            uint version = Library.volsfu_api_version();
            if (version != Library.ApiVersion)
            {
                throw new VolsfuException(-2, "the library volsfu has version " + version + " of the interface, expected " + Library.ApiVersion);
            }
        }

        /// <summary>A text as C has it; null for null.</summary>
        internal static byte[] Bytes(string text)
        {
            return text == null ? null : Encoding.UTF8.GetBytes(text + "\0");
        }

        /// <summary>Copies a text of C.</summary>
        internal static string Text(byte* text)
        {
            if (text == null)
            {
                return "";
            }
            int length = 0;
            while (text[length] != 0)
            {
                length++;
            }
            return Encoding.UTF8.GetString(text, length);
        }

        internal delegate int Writer(byte* buffer, UIntPtr capacity, UIntPtr* length);

        /// <summary>Reads a text from a function that writes a text.</summary>
        internal static string Read(Writer write)
        {
            var buffer = new byte[4096];
            while (true)
            {
                UIntPtr length;
                int status;
                fixed (byte* to = buffer)
                {
                    status = write(to, (UIntPtr)buffer.Length, &length);
                }
                if (status != VolsfuException.Buffer)
                {
                    Check(status);
                    return Encoding.UTF8.GetString(buffer, 0, (int)length);
                }
                // The text can have grown again before the next call.
                buffer = new byte[2 * (int)length + 1];
            }
        }

        /// <summary>The number of a codec of four characters, such as "zstd".</summary>
        internal static uint FourCC(string codec)
        {
            if (codec == null || codec.Length != 4)
            {
                throw new ArgumentException("the codec is '" + codec + "', expected four characters, such as 'zstd'");
            }
            return codec[0] | (uint)codec[1] << 8 | (uint)codec[2] << 16 | (uint)codec[3] << 24;
        }
    }

    /// <summary>Strings of names that arrive with each frame, so that a known name is not allocated again.</summary>
    sealed unsafe class Names
    {
        const int Most = 256;

        readonly byte[][] texts = new byte[Most][];
        readonly string[] names = new string[Most];
        int count, next;

        internal string Of(byte* text)
        {
            for (int i = 0; i < count; i++)
            {
                if (Same(texts[i], text))
                {
                    return names[i];
                }
            }
            // The oldest name makes room for a new one.
            names[next] = Native.Text(text);
            texts[next] = Native.Bytes(names[next]);
            string name = names[next];
            next = (next + 1) % Most;
            count = Math.Max(count, next == 0 ? Most : next);
            return name;
        }

        static bool Same(byte[] known, byte* text)
        {
            for (int i = 0; i < known.Length; i++)
            {
                if (known[i] != text[i])
                {
                    return false;
                }
            }
            return true;
        }
    }
}
