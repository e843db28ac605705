using System;
using System.Threading;

namespace Volsfu.Native
{
    /// <summary>
    /// Enters a room on a thread of its own, for programs whose thread must not wait. Ask TryTake until it returns true, or call
    /// Dispose to give up.
    /// </summary>
    public sealed class Joining : IDisposable
    {
        readonly object access = new object();
        Session session;
        Exception failure;
        bool taken;

        public Joining(SessionSettings settings)
        {
            new Thread(() => Join(settings)) { IsBackground = true, Name = "volsfu joining" }.Start();
        }

        void Join(SessionSettings settings)
        {
            Session entered = null;
            Exception refusal = null;
            try
            {
                entered = new Session(settings);
            }
            catch (Exception e)
            {
                // The library is missing, or the server refuses. TryTake throws it.
                refusal = e;
            }
            lock (access)
            {
                if (!taken)
                {
                    session = entered;
                    failure = refusal;
                    return;
                }
            }
            if (entered != null)
            {
                entered.Dispose();
            }
        }

        /// <summary>
        /// Returns true with the session, which then belongs to the caller, or false while the server has not answered. Throws
        /// the error if the room was not entered. Each result is given once.
        /// </summary>
        public bool TryTake(out Session entered)
        {
            lock (access)
            {
                entered = session;
                Exception refusal = failure;
                session = null;
                failure = null;
                taken = taken || entered != null || refusal != null;
                if (refusal != null)
                {
                    throw refusal;
                }
                return entered != null;
            }
        }

        /// <summary>Gives up. A room that was entered, or is entered later, is left without waiting.</summary>
        public void Dispose()
        {
            Session entered;
            lock (access)
            {
                taken = true;
                entered = session;
                session = null;
                failure = null;
            }
            if (entered != null)
            {
                entered.Leave();
            }
        }
    }
}
