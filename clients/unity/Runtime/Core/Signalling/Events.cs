using System.Collections.Generic;
using Volsfu.Json;

namespace Volsfu.Signalling
{
    /// <summary>Something that happened in the room or to the session: one of the classes below. They are plain data.</summary>
    public abstract class SignallingEvent { }

    /// <summary>The server took the client in; the room's state is new.</summary>
    public sealed class Joined : SignallingEvent
    {
        /// <summary>The room and the own identity, which a token may have named.</summary>
        public string Room, Identity;
        /// <summary>Whether an earlier session went on: publications and choices are as they were.</summary>
        public bool Resumed;
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

    /// <summary>The websocket broke; the session is tried again after a while, and resumed where the server still has it.</summary>
    public sealed class Interrupted : SignallingEvent
    {
        /// <summary>Why, for people.</summary>
        public string Reason;
        /// <summary>When it is tried again, in milliseconds.</summary>
        public long RetryMilliseconds;
    }

    /// <summary>The session is over; nothing is tried any more.</summary>
    public sealed class Ended : SignallingEvent
    {
        /// <summary>A code of docs/signalling.md, or "" where the client left.</summary>
        public string Code = "";
        /// <summary>Why, for people.</summary>
        public string Message = "";
    }

    /// <summary>A request was carried out.</summary>
    public sealed class RequestDone : SignallingEvent
    {
        /// <summary>What the method that made the request returned.</summary>
        public string Id;
    }

    /// <summary>A request was refused, or an error came that no request had caused; then Id is empty.</summary>
    public sealed class RequestFailed : SignallingEvent
    {
        /// <summary>What the method that made the request returned.</summary>
        public string Id = "";
        /// <summary>A code of docs/signalling.md, or "interrupted" where the websocket broke before the reply.</summary>
        public string Code = "";
        /// <summary>What was wrong, for people.</summary>
        public string Message = "";
    }

    /// <summary>Somebody came.</summary>
    public sealed class ParticipantJoined : SignallingEvent { public Participant Participant; }

    /// <summary>Somebody went, and all publications with them.</summary>
    public sealed class ParticipantLeft : SignallingEvent { public string Identity, Reason; }

    /// <summary>Somebody publishes one more object, or describes one anew.</summary>
    public sealed class Published : SignallingEvent
    {
        public string Participant;
        public Publication Publication;
    }

    /// <summary>A publication has ended.</summary>
    public sealed class Unpublished : SignallingEvent { public string Participant, Publication; }

    /// <summary>An object of somebody stands somewhere else now.</summary>
    public sealed class PoseChanged : SignallingEvent
    {
        public string Participant, Publication;
        public ObjectPose Pose;
    }

    /// <summary>
    /// The server offers. A program with a peer connection of its own answers by SignallingClient.Answer within 15 s; one that neither receives nor publishes
    /// gets no offers.
    /// </summary>
    public sealed class OfferReceived : SignallingEvent
    {
        public int Offer;
        public string Sdp;
        public List<MediaLine> Media = new List<MediaLine>();
    }

    /// <summary>What one line of an offer is for.</summary>
    public sealed class MediaLine
    {
        /// <summary>The line's mid.</summary>
        public string Mid;
        /// <summary>"publish": the client sends a track. "slot": it receives video. "audio": it receives sound.</summary>
        public string Role;
        /// <summary>The track, for "publish"; Publication is empty where the line has none.</summary>
        public string Publication = "";
        public int Tile, Quality;
    }

    /// <summary>A candidate of the server's; an empty one says that there are no more.</summary>
    public sealed class CandidateReceived : SignallingEvent
    {
        public string Candidate, Mid;
        public int LineIndex;
    }

    /// <summary>Slots carry something else from now on. They have been acknowledged already.</summary>
    public sealed class AssignmentsChanged : SignallingEvent { public List<Assignment> Assignments = new List<Assignment>(); }

    /// <summary>What one slot carries.</summary>
    public sealed class Assignment
    {
        /// <summary>The slot's media line.</summary>
        public string Mid;
        /// <summary>The assignment's number on this slot.</summary>
        public long Generation;
        /// <summary>The tile; Participant is empty where the slot is idle.</summary>
        public string Participant = "", Publication = "";
        public int Tile;
        /// <summary>The one quality that the slot carries in mode descriptions; -1 in mode alternatives.</summary>
        public int Description = -1;
    }

    /// <summary>A tile is sent at another quality.</summary>
    public sealed class Sending : SignallingEvent
    {
        public string Participant, Publication;
        public int Tile;
        /// <summary>The quality; -1 is off.</summary>
        public int Quality;
        /// <summary>"choice", "auto", "budget" or "unseen", as in docs/signalling.md.</summary>
        public string Reason;
        /// <summary>From when the server read the request to the first packet, in microseconds; 0 where nothing was asked for.</summary>
        public long DelayMicroseconds;
    }

    /// <summary>What the server thinks of this client's link, in bit/s.</summary>
    public sealed class Bandwidth : SignallingEvent { public long Estimate, Allocated, Wanted; }

    /// <summary>The server will end the session, after GraceMilliseconds where they are not 0.</summary>
    public sealed class Closing : SignallingEvent
    {
        public string Code, Message;
        public long GraceMilliseconds;
    }

    /// <summary>A message of the server's could not be read and was passed over.</summary>
    public sealed class Unreadable : SignallingEvent { public string Problem; }
}
