using System.Collections.Generic;
using Volsfu.Json;

namespace Volsfu.Signalling
{
    public sealed partial class SignallingSession
    {
        /// <summary>The server that has accepted the client, at first that of the settings.</summary>
        string home;
        /// <summary>The ticket for Server, empty for none.</summary>
        string ticket = "";
        /// <summary>The other servers on which the session can be resumed, in the order of preference.</summary>
        List<string> nodes = new List<string>();
        /// <summary>The index in nodes of the next server to try, and the number of moves since the last Joined.</summary>
        int nextNode, moves;
        /// <summary>Whether the next join asks for a new peer connection, because the former one is lost.</summary>
        bool newConnection;

        /// <summary>The address of the server to which the next websocket is opened.</summary>
        public string Server { get; private set; }

        /// <summary>
        /// Follows a server's message to another server: in reply to a join with the ticket of the message, or else by
        /// resuming the session with the ticket instead of the secret and with a new peer connection.
        /// </summary>
        void Move(JsonValue json, long now)
        {
            string id = json.OptionalText("id", Limits.Name);
            string server = Address.Check(json.Text("url", Limits.Url)), given = json.Text("ticket", Limits.Format);
            if (leaveId != "" || (phase == Phase.Joining && id != joinId))
            {
                return;
            }
            if (++moves > Limits.Servers)
            {
                moves = 0;
                Broke("", "the servers moved the client more than " + Limits.Servers + " times", now);
                return;
            }
            newConnection = newConnection || phase == Phase.Joined;
            pending.Remove(joinId);
            Forget();
            Server = server;
            ticket = given;
            phase = Phase.Apart;
            retryAt = now;
            Tell(new Moved { Server = server });
        }

        /// <summary>Replaces the list of other servers, and the secret if there is another.</summary>
        void LearnNodes(JsonValue json)
        {
            List<string> servers = ServerMessages.Nodes(json);
            string another = json.OptionalText("secret", Limits.Format);
            nodes = servers;
            nextNode = 0;
            secret = another == "" ? secret : another;
        }

        /// <summary>Records that Server has accepted the client.</summary>
        void Arrive(List<string> servers)
        {
            home = Server;
            ticket = "";
            nodes = servers;
            nextNode = 0;
            moves = 0;
            newConnection = false;
        }

        /// <summary>
        /// Chooses the server of the next attempt: after a failed move the one before, and otherwise the others in turn,
        /// if the session can be resumed there.
        /// </summary>
        void ChooseServer()
        {
            if (ticket != "" || session == "" || nextNode >= nodes.Count)
            {
                Server = home;
                nextNode = 0;
            }
            else
            {
                Server = nodes[nextNode++];
            }
            ticket = "";
        }
    }
}
