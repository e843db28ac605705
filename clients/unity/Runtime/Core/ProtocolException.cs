using System;

namespace Volsfu
{
    /// <summary>
    /// Data from outside, or data to be sent, violates the protocol. The message contains the expected value. The
    /// network threads count such errors and continue; for callers of this package's methods it means an invalid
    /// argument.
    /// </summary>
    public sealed class ProtocolException : Exception
    {
        /// <summary>Creates the exception with the cause.</summary>
        public ProtocolException(string message) : base(message) { }
    }
}
