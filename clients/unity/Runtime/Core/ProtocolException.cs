using System;

namespace Volsfu
{
    /// <summary>
    /// Something that came from outside, or that is to be sent there, is not what the protocol allows. The message says what was expected. Where the network's own
    /// threads meet one they count it and go on; to those who call this package's methods it says that an argument is wrong.
    /// </summary>
    public sealed class ProtocolException : Exception
    {
        /// <summary>Says what is wrong.</summary>
        public ProtocolException(string message) : base(message) { }
    }
}
