package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// Version is the version of the messages of this build, Oldest the oldest version that it shares rooms with. A
	// build reads the messages of the version before its own.
	Version = 1
	Oldest  = 1
	// MaxMessageBytes is the maximum length of a message. The longest publication, 256 tiles with labels of the maximum
	// length, takes 123 kB, a digest of MaxRooms rooms 140 kB.
	MaxMessageBytes = 256 << 10
	// MaxRooms is the maximum number of rooms of a node.
	MaxRooms = 4096

	// partBytes is the maximum weight of the changes in one delta or part of a snapshot. The weight is an estimate.
	partBytes = 192 << 10
	// maxParts is the maximum number of parts of a snapshot: 48 MiB for the part of a room that one node has.
	maxParts = 256
	// maxChanged, maxRequested, maxSuspects and maxTombstones are the maximum numbers of entries in one message. A beat
	// with all of them takes 170 kB.
	maxChanged    = 2048
	maxRequested  = 256
	maxSuspects   = 1024
	maxTombstones = 64
	// maxText is the maximum length of an address, region, fingerprint or token.
	maxText = 256
	// maxKind is the maximum length of the kind of a tombstone. Later versions may have other kinds.
	maxKind = 16
	// MaxSessionState is the maximum length of the state of a session, in bytes.
	MaxSessionState = 64 << 10
	// keyDigits is the number of digits of a room's key.
	keyDigits = 16
)

// ErrMessage reports an invalid message.
var ErrMessage = errors.New("invalid message of a node")

// Message is a message between nodes. Exactly one of Beat, Delta, Snapshot, Digest, Request and Session is set, or none
// and Tombstones is not empty. The Replica and its user do not change a message after it was sent or received.
type Message struct {
	Node        string      `json:"node"`
	Incarnation uint64      `json:"incarnation"`
	Beat        *Beat       `json:"beat,omitempty"`
	Delta       *Delta      `json:"delta,omitempty"`
	Snapshot    *Snapshot   `json:"snapshot,omitempty"`
	Digest      *Digest     `json:"digest,omitempty"`
	Request     *Request    `json:"request,omitempty"`
	Tombstones  []Tombstone `json:"tombstones,omitempty"`
	// Session is for a node that keeps the record in case the home dies.
	Session *SessionRecord `json:"session,omitempty"`

	// size is the length of the message that was decoded, 0 for messages of this process.
	size int
}

// Beat is sent to all nodes every Config.Beat.
type Beat struct {
	// Number counts the beats of the incarnation, from 1.
	Number uint64 `json:"number"`
	// Version and Oldest are the versions that the node shares rooms with.
	Version int `json:"version"`
	Oldest  int `json:"oldest"`
	Description
	Status
	// Gone is set in the last beat of a node that stops.
	Gone bool `json:"gone,omitempty"`
	// Suspects are the nodes that the node suspects, or that are dead in its view.
	Suspects []string `json:"suspects,omitempty"`
	// Sequence is the number of the node's latest delta, Sum the sum over its rooms, and Changed the rooms that changed
	// in the last second, by key, with the number of their latest delta, 0 for a room that the node has left.
	Sequence uint64            `json:"sequence"`
	Sum      uint64            `json:"sum"`
	Changed  map[string]uint64 `json:"changed,omitempty"`
}

// Description describes a node.
type Description struct {
	Region string `json:"region,omitempty"`
	// URL is the address for clients, Proxy the HOST:PORT for proxied websockets, and Trunk the HOST:PORT of the trunk.
	URL   string `json:"url,omitempty"`
	Proxy string `json:"proxy,omitempty"`
	Trunk string `json:"trunk,omitempty"`
	// Fingerprint is that of the node's certificate.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Status is the state of a node that changes.
type Status struct {
	Draining bool `json:"draining,omitempty"`
	// Load is the load as a share of the capacity, JoinLoad the share that one join adds.
	Load         float64 `json:"load,omitempty"`
	JoinLoad     float64 `json:"join_load,omitempty"`
	Rooms        int     `json:"rooms,omitempty"`
	Participants int     `json:"participants,omitempty"`
}

// Delta carries changes of a room, to the nodes in the room.
type Delta struct {
	Room string `json:"room"`
	// Sequence is the number of the delta, and Previous that of the preceding delta of the room, 0 if the node has just
	// entered the room. Numbers increase over all rooms of the node.
	Sequence uint64 `json:"sequence"`
	Previous uint64 `json:"previous,omitempty"`
	// Gone is set if the node has left the room.
	Gone    bool     `json:"gone,omitempty"`
	Changes []Change `json:"changes,omitempty"`
}

// Change is a change of one participant or publication, or of the node's part of the room's state. A change has one of
// five forms: Participant joins or changes; Left leaves; Publisher publishes or changes Publication; Publisher ends the
// publication Unpublished; State replaces the state.
type Change struct {
	State       *RoomState   `json:"state,omitempty"`
	Participant *Participant `json:"participant,omitempty"`
	Left        string       `json:"left,omitempty"`
	Publisher   string       `json:"publisher,omitempty"`
	Publication *Publication `json:"publication,omitempty"`
	Unpublished string       `json:"unpublished,omitempty"`
}

// Snapshot carries the whole part of a room that one node has, to a node that requested it. The changes are those that
// create the content.
type Snapshot struct {
	Room     string   `json:"room"`
	Sequence uint64   `json:"sequence"`
	Part     int      `json:"part,omitempty"`
	Parts    int      `json:"parts"`
	Changes  []Change `json:"changes,omitempty"`
}

// Digest carries the number of the latest delta of each room of a node, by key, to a node that requested it.
type Digest struct {
	Sequence uint64            `json:"sequence"`
	Rooms    map[string]uint64 `json:"rooms"`
}

// Request requests the digest and snapshots of rooms.
type Request struct {
	Digest bool     `json:"digest,omitempty"`
	Rooms  []string `json:"rooms,omitempty"`
}

// SessionRecord is the state of a session that another node needs to continue the session.
type SessionRecord struct {
	Room     string `json:"room"`
	Identity string `json:"identity"`
	Session  string `json:"session"`
	Epoch    uint64 `json:"epoch,omitempty"`
	// Number counts the records of the session at its home, from 1.
	Number uint64 `json:"number"`
	// State is the state that rooms write and read, empty if the session has ended or the state is too long.
	State json.RawMessage `json:"state,omitempty"`
	// Ended is set in the last record of a session that has ended.
	Ended bool `json:"ended,omitempty"`
}

// Tombstone removes participants of a room. Kind selects those that it covers.
type Tombstone struct {
	Kind TombstoneKind `json:"kind"`
	Room string        `json:"room"`
	// Identity is empty for TombstoneRoom.
	Identity string `json:"identity,omitempty"`
	// Session is the session that ends, for TombstoneKick empty if it is unknown. Epoch is for TombstoneSession.
	Session string    `json:"session,omitempty"`
	Epoch   uint64    `json:"epoch,omitempty"`
	At      time.Time `json:"at"`
	// Until is the end of the ban of a kick, zero for none. The ban excludes the token TokenID, too, if it is set.
	Until   time.Time `json:"until,omitzero"`
	TokenID string    `json:"token_id,omitempty"`
}

// TombstoneKind is the kind of a tombstone.
type TombstoneKind string

// The kinds of tombstones.
const (
	// TombstoneKick covers the session, and all participants with the identity that joined before the time.
	TombstoneKick TombstoneKind = "kick"
	// TombstoneRoom covers all participants of the room that joined before the time.
	TombstoneRoom TombstoneKind = "room"
	// TombstoneSession covers the session up to the epoch.
	TombstoneSession TombstoneKind = "session"
)

// Outgoing is a message with its receivers.
type Outgoing struct {
	// Room is set if the message is for the nodes in a room, Node if it is for one node. Otherwise it is for all nodes.
	Room, Node string
	Message    *Message
}

// RoomKey returns the key of a room: 16 hexadecimal digits of the SHA-256 of its name.
func RoomKey(room string) string {
	sum := sha256.Sum256([]byte(room))
	return hex.EncodeToString(sum[:keyDigits/2])
}

// entrySum returns the contribution of a room to Beat.Sum. The finaliser of SplitMix64 spreads the bits, so that sums
// of different digests differ.
func entrySum(key string, sequence uint64) uint64 {
	x := sequence * 0x9e3779b97f4a7c15
	for i := range len(key) {
		x = bits.RotateLeft64(x, 9) ^ uint64(key[i])*0x9e3779b97f4a7c15
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Encode returns the message as JSON.
func (m *Message) Encode() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m); err != nil {
		return nil, err
	}
	if text.Len() > MaxMessageBytes {
		return nil, fmt.Errorf("%w: %d bytes, expected at most %d", ErrMessage, text.Len(), MaxMessageBytes)
	}
	return text.Bytes(), nil
}

// Decode decodes and checks a message. Unknown keys are ignored. The error wraps ErrMessage.
func Decode(data []byte) (*Message, error) {
	if len(data) > MaxMessageBytes {
		return nil, fmt.Errorf("%w: %d bytes, expected at most %d", ErrMessage, len(data), MaxMessageBytes)
	}
	m := &Message{size: len(data)}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if err := m.validate(); err != nil {
		if errors.Is(err, ErrMessage) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return m, nil
}

func (m *Message) validate() error {
	if err := certificate.CheckName(m.Node); err != nil {
		return err
	}
	if m.Incarnation == 0 {
		return fmt.Errorf("%w: the incarnation is missing", ErrMessage)
	}
	if len(m.Tombstones) > maxTombstones {
		return tooMany("tombstones", len(m.Tombstones), maxTombstones)
	}
	for i := range m.Tombstones {
		if err := m.Tombstones[i].validate(); err != nil {
			return err
		}
	}
	kinds := 0
	for _, part := range []struct {
		present bool
		check   func() error
	}{
		{m.Beat != nil, func() error { return m.Beat.validate() }},
		{m.Delta != nil, func() error { return m.Delta.validate() }},
		{m.Snapshot != nil, func() error { return m.Snapshot.validate() }},
		{m.Digest != nil, func() error { return validateKeys(m.Digest.Rooms, MaxRooms) }},
		{m.Request != nil, func() error { return m.Request.validate() }},
		{m.Session != nil, func() error { return m.Session.validate() }},
	} {
		if part.present {
			kinds++
			if err := part.check(); err != nil {
				return err
			}
		}
	}
	if kinds > 1 || kinds == 0 && len(m.Tombstones) == 0 {
		return fmt.Errorf("%w: %d kinds in one message, expected 1", ErrMessage, kinds)
	}
	return nil
}

func tooMany(what string, count, limit int) error {
	return fmt.Errorf("%w: %d %s, expected at most %d", ErrMessage, count, what, limit)
}

func (b *Beat) validate() error {
	if len(b.Suspects) > maxSuspects {
		return tooMany("suspects", len(b.Suspects), maxSuspects)
	}
	for _, name := range b.Suspects {
		if err := certificate.CheckName(name); err != nil {
			return err
		}
	}
	for _, text := range []string{b.Region, b.URL, b.Proxy, b.Trunk, b.Fingerprint} {
		if len(text) > maxText {
			return fmt.Errorf("%w: %.20q… has %d bytes, expected at most %d", ErrMessage, text, len(text), maxText)
		}
	}
	return validateKeys(b.Changed, maxChanged)
}

func validateKeys(rooms map[string]uint64, limit int) error {
	if len(rooms) > limit {
		return tooMany("rooms", len(rooms), limit)
	}
	for key := range rooms {
		if len(key) != keyDigits {
			return fmt.Errorf("%w: key of a room is %.20q, expected %d digits", ErrMessage, key, keyDigits)
		}
	}
	return nil
}

func (d *Delta) validate() error {
	if err := volumetric.ValidateName("room", d.Room); err != nil {
		return err
	}
	if d.Sequence <= d.Previous {
		return fmt.Errorf("%w: number %d of a delta after %d", ErrMessage, d.Sequence, d.Previous)
	}
	return validateChanges(d.Changes)
}

func (s *Snapshot) validate() error {
	if err := volumetric.ValidateName("room", s.Room); err != nil {
		return err
	}
	if s.Sequence == 0 || s.Parts < 1 || s.Parts > maxParts || s.Part < 0 || s.Part >= s.Parts {
		return fmt.Errorf("%w: part %d of %d (at most %d) of a snapshot with number %d", ErrMessage, s.Part, s.Parts,
			maxParts, s.Sequence)
	}
	return validateChanges(s.Changes)
}

func (q *Request) validate() error {
	if len(q.Rooms) > maxRequested {
		return tooMany("rooms", len(q.Rooms), maxRequested)
	}
	for _, room := range q.Rooms {
		if err := volumetric.ValidateName("room", room); err != nil {
			return err
		}
	}
	return nil
}

func (s *SessionRecord) validate() error {
	if err := volumetric.ValidateName("room", s.Room); err != nil {
		return err
	}
	if err := volumetric.ValidateName("participant", s.Identity); err != nil {
		return err
	}
	if s.Session == "" || len(s.Session) > maxSessionBytes {
		return fmt.Errorf("%w: session of a record has %d bytes, expected 1 to %d", ErrMessage, len(s.Session),
			maxSessionBytes)
	}
	if len(s.State) > MaxSessionState {
		return fmt.Errorf("%w: state of a session has %d bytes, expected at most %d", ErrMessage, len(s.State),
			MaxSessionState)
	}
	return nil
}

func validateChanges(changes []Change) error {
	for i := range changes {
		if err := changes[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) validate() error {
	switch {
	case c.State != nil:
		return c.State.validate()
	case c.Participant != nil:
		return c.Participant.validate()
	case c.Left != "":
		return volumetric.ValidateName("participant", c.Left)
	case c.Publication != nil:
		if err := volumetric.ValidateName("participant", c.Publisher); err != nil {
			return err
		}
		return c.Publication.Description.Validate()
	default:
		if err := volumetric.ValidateName("participant", c.Publisher); err != nil {
			return err
		}
		return volumetric.ValidateName("publication", c.Unpublished)
	}
}

func (c *Change) weight() int {
	switch {
	case c.State != nil:
		return c.State.weight()
	case c.Participant != nil:
		return c.Participant.weight()
	case c.Publication != nil:
		return c.Publication.weight() + len(c.Publisher)
	default:
		return 60 + len(c.Left) + len(c.Publisher) + len(c.Unpublished)
	}
}

// split splits changes into pieces of about partBytes. The result has at least one piece.
func split(changes []Change) [][]Change {
	pieces := [][]Change{}
	weight, begin := 0, 0
	for i := range changes {
		next := changes[i].weight()
		if i > begin && weight+next > partBytes {
			pieces, weight, begin = append(pieces, changes[begin:i]), 0, i
		}
		weight += next
	}
	return append(pieces, changes[begin:])
}

func (t *Tombstone) validate() error {
	if err := volumetric.ValidateName("room", t.Room); err != nil {
		return err
	}
	if len(t.Session) > maxSessionBytes {
		return fmt.Errorf("%w: session of a tombstone has %d bytes, expected at most %d", ErrMessage, len(t.Session),
			maxSessionBytes)
	}
	if len(t.TokenID) > maxText {
		return fmt.Errorf("%w: token of a ban has %d bytes, expected at most %d", ErrMessage, len(t.TokenID), maxText)
	}
	if len(t.Kind) > maxKind {
		return fmt.Errorf("%w: kind of a tombstone has %d bytes, expected at most %d", ErrMessage, len(t.Kind), maxKind)
	}
	if t.Kind == TombstoneRoom && t.Identity == "" {
		return nil
	}
	return volumetric.ValidateName("participant", t.Identity)
}
