using System.Collections.Generic;

namespace Volsfu.Signalling
{
    /// <summary>An event of the room or the session: one of the classes below, which are plain data.</summary>
    public abstract class SignallingEvent { }

    /// <summary>The server accepted the client; the room's state is new.</summary>
    public sealed class Joined : SignallingEvent
    {
        /// <summary>The room and the own identity, which may be from a token.</summary>
        public string Room, Identity;
        /// <summary>Whether an earlier session continues: publications and choices are unchanged.</summary>
        public bool Resumed;
        /// <summary>Whether the server has lost the state of a resumed session. The session has sent it again.</summary>
        public bool Lost;
        /// <summary>Whether the next offer is for a new peer connection of the program's own.</summary>
        public bool NewConnection;
        /// <summary>The number of the program's peer connection to this server: each new one has the next number, from 1.</summary>
        public int Connection;
        /// <summary>
        /// The number of the connection to the former server, which the program uses until it calls LeaveFormer; 0 if there
        /// is none.
        /// </summary>
        public int Former;
        /// <summary>STUN and TURN servers for a peer connection of the program's own.</summary>
        public List<IceServer> IceServers = new List<IceServer>();
    }

    /// <summary>A STUN or TURN server, as in the W3C's RTCIceServer.</summary>
    public sealed class IceServer
    {
        /// <summary>stun:, turn: and turns: addresses.</summary>
        public List<string> Urls = new List<string>();
        /// <summary>May be empty.</summary>
        public string Username = "", Credential = "";
    }

    /// <summary>
    /// The websocket broke; a new attempt follows after a while, and the session is resumed if the server still has it.
    /// </summary>
    public sealed class Interrupted : SignallingEvent
    {
        /// <summary>The reason in human-readable form.</summary>
        public string Reason;
        /// <summary>The time until the next attempt, in milliseconds.</summary>
        public long RetryMilliseconds;
    }

    /// <summary>
    /// The server has told the client to continue on another server of the cluster. Joined follows; the session
    /// continues.
    /// </summary>
    public sealed class Moved : SignallingEvent
    {
        /// <summary>The address of the other server.</summary>
        public string Server;
    }

    /// <summary>
    /// The former server of a move is left: after LeaveFormer, at the end of its time, or because there is another move or
    /// connection. The program closes the peer connection.
    /// </summary>
    public sealed class FormerEnded : SignallingEvent
    {
        /// <summary>The number of the connection.</summary>
        public int Connection;
    }

    /// <summary>The session is over, without further attempts.</summary>
    public sealed class Ended : SignallingEvent
    {
        /// <summary>A code of docs/signalling.md, or "" if the client left.</summary>
        public string Code = "";
        /// <summary>The reason in human-readable form.</summary>
        public string Message = "";
    }

    /// <summary>A request was carried out.</summary>
    public sealed class RequestDone : SignallingEvent
    {
        /// <summary>The return value of the method that made the request.</summary>
        public string Id;
    }

    /// <summary>A request was rejected, or an error arrived without a request; then Id is empty.</summary>
    public sealed class RequestFailed : SignallingEvent
    {
        /// <summary>The return value of the method that made the request.</summary>
        public string Id = "";
        /// <summary>
        /// A code of docs/signalling.md, or "interrupted" if the websocket broke, or the session moved to another
        /// server, before the reply.
        /// </summary>
        public string Code = "";
        /// <summary>The cause in human-readable form.</summary>
        public string Message = "";
        /// <summary>The time after which the request may succeed, in milliseconds; 0 if it is not known.</summary>
        public long RetryAfterMilliseconds;
    }

    /// <summary>A participant joined.</summary>
    public sealed class ParticipantJoined : SignallingEvent { public Participant Participant; }

    /// <summary>A participant left, with all publications.</summary>
    public sealed class ParticipantLeft : SignallingEvent { public string Identity, Reason; }

    /// <summary>A participant has a new publication, or a new description of one.</summary>
    public sealed class Published : SignallingEvent
    {
        public string Participant;
        public Publication Publication;
    }

    /// <summary>A publication has ended.</summary>
    public sealed class Unpublished : SignallingEvent { public string Participant, Publication; }

    /// <summary>The pose of an object has changed.</summary>
    public sealed class PoseChanged : SignallingEvent
    {
        public string Participant, Publication;
        public ObjectPose Pose;
    }

    /// <summary>
    /// An offer of the server. A program with its own peer connection answers with SignallingClient.Answer within 15 s;
    /// one that neither receives nor publishes gets no offers.
    /// </summary>
    public sealed class OfferReceived : SignallingEvent
    {
        /// <summary>The number of the peer connection, as in Joined.</summary>
        public int Connection;
        public int Offer;
        public string Sdp;
        public List<MediaLine> Media = new List<MediaLine>();
    }

    /// <summary>The purpose of one line of an offer.</summary>
    public sealed class MediaLine
    {
        /// <summary>The line's mid.</summary>
        public string Mid;
        /// <summary>"publish": the client sends a track. "slot": the client receives video. "audio": the client receives sound.</summary>
        public string Role;
        /// <summary>The track, for "publish"; Publication is empty if the line has none.</summary>
        public string Publication = "";
        public int Tile, Quality;
    }

    /// <summary>A candidate of the server; an empty one means that there are no more.</summary>
    public sealed class CandidateReceived : SignallingEvent
    {
        /// <summary>The number of the peer connection, as in Joined.</summary>
        public int Connection;
        public string Candidate, Mid;
        public int LineIndex;
    }

    /// <summary>The content of slots has changed. The assignments have already been acknowledged.</summary>
    public sealed class AssignmentsChanged : SignallingEvent
    {
        /// <summary>The number of the peer connection, as in Joined.</summary>
        public int Connection;
        public List<Assignment> Assignments = new List<Assignment>();
    }

    /// <summary>The content of one slot.</summary>
    public sealed class Assignment
    {
        /// <summary>The slot's media line.</summary>
        public string Mid;
        /// <summary>The assignment's number on this slot.</summary>
        public long Generation;
        /// <summary>The tile; Participant is empty if the slot is idle.</summary>
        public string Participant = "", Publication = "";
        public int Tile;
        /// <summary>The only quality of the slot in mode descriptions; -1 in mode alternatives.</summary>
        public int Description = -1;
    }

    /// <summary>A tile is sent at another quality.</summary>
    public sealed class Sending : SignallingEvent
    {
        /// <summary>The number of the peer connection, as in Joined.</summary>
        public int Connection;
        public string Participant, Publication;
        public int Tile;
        /// <summary>The quality; -1 is off.</summary>
        public int Quality;
        /// <summary>"choice", "auto", "budget" or "unseen", as in docs/signalling.md.</summary>
        public string Reason;
        /// <summary>
        /// The time from the server's reading of the request to the first packet, in microseconds; 0 without a request.
        /// </summary>
        public long DelayMicroseconds;
    }

    /// <summary>The server's estimate of this client's link, in bit/s.</summary>
    public sealed class Bandwidth : SignallingEvent { public long Estimate, Allocated, Wanted; }

    /// <summary>The server will end the session, after GraceMilliseconds if that is not 0.</summary>
    public sealed class Closing : SignallingEvent
    {
        public string Code, Message;
        public long GraceMilliseconds;
    }

    /// <summary>A message of the server was unreadable and was ignored.</summary>
    public sealed class Unreadable : SignallingEvent { public string Problem; }
}
