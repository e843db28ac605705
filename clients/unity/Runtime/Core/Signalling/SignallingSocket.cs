using System;
using System.IO;
using System.Net;
using System.Net.WebSockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Volsfu.Signalling
{
    /// <summary>
    /// One websocket. The thread that opened it sends and closes; its own thread reads and passes each text to the
    /// given function. The size of messages is bounded.
    /// </summary>
    sealed class SignallingSocket : IDisposable
    {
        const int sendTimeout = 10000, closeTimeout = 1000;

        static readonly UTF8Encoding strict = new UTF8Encoding(false, true);

        readonly ClientWebSocket socket = new ClientWebSocket();
        readonly CancellationTokenSource ending = new CancellationTokenSource();
        readonly Action<string> received;
        Thread reader;
        volatile bool ended;
        volatile string code = "", reason = "the websocket was closed";

        internal SignallingSocket(Action<string> received)
        {
            this.received = received;
        }

        /// <summary>Whether the websocket has ended.</summary>
        internal bool HasEnded { get { return ended; } }

        /// <summary>
        /// The reason of the end: that in the server's close frame, which is a code of docs/signalling.md, or else
        /// empty; and a human-readable form.
        /// </summary>
        internal string Code { get { return code; } }
        internal string Reason { get { return reason; } }

        /// <summary>
        /// Opens the websocket within a limit in milliseconds. After a failure, the code is "unauthorized" for a rejected token, and empty for all
        /// temporary causes.
        /// </summary>
        internal bool Open(Uri address, string token, int limit, out string failure, out string why)
        {
            failure = "";
            why = "";
            try
            {
                if (!string.IsNullOrEmpty(token))
                {
                    socket.Options.SetRequestHeader("Authorization", "Bearer " + token);
                }
                if (!socket.ConnectAsync(address, ending.Token).Wait(limit, ending.Token))
                {
                    why = "no answer from " + address.Authority;
                    return false;
                }
            }
            catch (Exception e)
            {
                string refusal = ending.IsCancellationRequested ? "" : RefusalOf(address, token, limit);
                failure = refusal == "" ? "" : "unauthorized";
                why = refusal == "" ? Innermost(e).Message : refusal;
                return false;
            }
            reader = new Thread(Read) { IsBackground = true, Name = "volsfu signalling, reading" };
            reader.Start();
            return true;
        }

        /// <summary>Cancels waits for opening or sending. It may be called from any thread.</summary>
        internal void Cancel()
        {
            ending.Cancel();
        }

        /// <summary>Sends one text; returns false after a failure.</summary>
        internal bool Send(string text)
        {
            try
            {
                Task sending = socket.SendAsync(new ArraySegment<byte>(strict.GetBytes(text)), WebSocketMessageType.Text, true, ending.Token);
                return sending.Wait(sendTimeout, ending.Token);
            }
            catch (Exception e)
            {
                reason = Innermost(e).Message;
                return false;
            }
        }

        /// <summary>
        /// Ends the websocket and waits for its reader. A server that is silent gets no close frame, and its own is not
        /// awaited.
        /// </summary>
        internal void Close(bool silent)
        {
            try
            {
                if (!silent && (socket.State == WebSocketState.Open || socket.State == WebSocketState.CloseReceived))
                {
                    socket.CloseOutputAsync(WebSocketCloseStatus.NormalClosure, "", ending.Token).Wait(closeTimeout);
                }
            }
            catch (Exception)
            {
                // The connection is already closed, which is the intended result.
            }
            if (!silent && !ended)
            {
                reader.Join(closeTimeout);
            }
            ending.Cancel();
            socket.Abort();
            reader.Join();
        }

        /// <summary>Frees the websocket.</summary>
        public void Dispose()
        {
            socket.Dispose();
            ending.Dispose();
        }

        void Read()
        {
            var buffer = new byte[1 << 16];
            try
            {
                var message = new MemoryStream();
                for (;;)
                {
                    WebSocketReceiveResult result = socket.ReceiveAsync(new ArraySegment<byte>(buffer), ending.Token).GetAwaiter().GetResult();
                    if (result.MessageType == WebSocketMessageType.Close)
                    {
                        code = result.CloseStatus == WebSocketCloseStatus.NormalClosure ? "" : result.CloseStatusDescription ?? "";
                        reason = "the server closed the websocket" + (code == "" ? "" : ": " + code);
                        return;
                    }
                    message.Write(buffer, 0, result.Count);
                    if (message.Length > Limits.Message || result.MessageType != WebSocketMessageType.Text)
                    {
                        reason = "a message of the server's is no text, or too long";
                        return;
                    }
                    if (result.EndOfMessage)
                    {
                        received(strict.GetString(message.GetBuffer(), 0, (int)message.Length));
                        message.SetLength(0);
                    }
                }
            }
            catch (Exception e)
            {
                // Any end of reading ends the websocket; the client opens another.
                reason = Innermost(e).Message;
            }
            finally
            {
                ended = true;
            }
        }

        static Exception Innermost(Exception e)
        {
            while (e.InnerException != null)
            {
                e = e.InnerException;
            }
            return e;
        }

        /// <summary>
        /// Returns the reason why the server does not open a websocket if it is a missing or invalid token; else empty.
        /// Mono and Unity do not expose the status of the rejection, so it is requested again without a websocket. The
        /// server checks the token before anything else.
        /// </summary>
        static string RefusalOf(Uri address, string token, int limit)
        {
            try
            {
                var builder = new UriBuilder(address) { Scheme = address.Scheme == "wss" ? "https" : "http" };
                var request = (HttpWebRequest)WebRequest.Create(builder.Uri);
                request.Timeout = limit;
                request.AllowAutoRedirect = false;
                if (!string.IsNullOrEmpty(token))
                {
                    request.Headers[HttpRequestHeader.Authorization] = "Bearer " + token;
                }
                request.GetResponse().Close();
                return "";
            }
            catch (WebException e)
            {
                using (var response = e.Response as HttpWebResponse)
                {
                    return response != null && response.StatusCode == HttpStatusCode.Unauthorized ? "the server takes no token but a valid one" : "";
                }
            }
        }
    }
}
