package e2ee

import (
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/pkg/sframe"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Reasons for which a frame or a packet is refused. The wrapping errors have the details.
var (
	ErrNoKey        = errors.New("no key")
	ErrUnknownEpoch = errors.New("no key of this epoch")
	// ErrWrongKey means that nothing of the sender in this epoch could be decrypted so far.
	ErrWrongKey = errors.New("wrong key")
	// ErrAltered means that other data of the sender in this epoch could be decrypted.
	ErrAltered   = errors.New("altered on the way")
	ErrReplay    = errors.New("received before")
	ErrMalformed = errors.New("not an encrypted frame")
	// ErrNotEncrypted means that the publication is not marked as encrypted, and the receiver expects encryption.
	ErrNotEncrypted  = errors.New("not encrypted")
	ErrUnknownScheme = errors.New("unknown encryption")
)

// Refusals counts refused frames and packets by reason.
type Refusals struct {
	NoKey         uint64 `json:"no_key"`
	UnknownEpoch  uint64 `json:"unknown_epoch"`
	WrongKey      uint64 `json:"wrong_key"`
	Altered       uint64 `json:"altered"`
	Replay        uint64 `json:"replay"`
	Malformed     uint64 `json:"malformed"`
	NotEncrypted  uint64 `json:"not_encrypted"`
	UnknownScheme uint64 `json:"unknown_scheme"`
}

// Total returns the sum of all reasons.
func (r Refusals) Total() uint64 {
	return r.NoKey + r.UnknownEpoch + r.WrongKey + r.Altered + r.Replay + r.Malformed + r.NotEncrypted +
		r.UnknownScheme
}

// Add counts an error of Opener.Open.
func (r *Refusals) Add(err error) {
	for _, reason := range []struct {
		err   error
		count *uint64
	}{
		{ErrNoKey, &r.NoKey},
		{ErrUnknownEpoch, &r.UnknownEpoch},
		{ErrWrongKey, &r.WrongKey},
		{ErrAltered, &r.Altered},
		{ErrReplay, &r.Replay},
		{ErrMalformed, &r.Malformed},
		{ErrNotEncrypted, &r.NotEncrypted},
		{ErrUnknownScheme, &r.UnknownScheme},
	} {
		if errors.Is(err, reason.err) {
			*reason.count++
			return
		}
	}
}

const (
	// maxSessions is the number of sessions of a participant in an epoch from which frames are accepted. The session
	// that was received from least recently is retired, and its frames count as replays. A participant has one session
	// in a room, and frames of a session before that arrive within a second.
	maxSessions = 4
	// maxRetired bounds the retired sessions that are recorded, of a participant in an epoch. With more sessions, the
	// participant has to wait for the next epoch.
	maxRetired = 4096
	// maxSenders bounds the participants and epochs that are recorded: 10 epochs of 100 participants, 32 MiB at most.
	maxSenders = 1024
)

// sender is what is known of a participant in an epoch from which frames were decrypted.
type sender struct {
	secret   secret
	sessions map[uint64]*incoming
	retired  map[uint64]struct{}
}

// incoming is a session of a sender.
type incoming struct {
	key      *sframe.Key
	received window
	// used is the number of the last frame of the session among all frames of the opener.
	used uint64
}

// Opener decrypts what other participants send. Its methods are not safe for concurrent use.
type Opener struct {
	keys    *Keys
	senders map[owner]*sender
	// opened counts the decrypted frames and packets.
	opened uint64
}

// NewOpener returns an opener. keys may be nil: everything that is encrypted is then refused.
func NewOpener(keys *Keys) *Opener {
	return &Opener{keys: keys, senders: make(map[owner]*sender)}
}

// Expects reports whether the opener has keys, so that senders are expected to encrypt.
func (o *Opener) Expects() bool { return o.keys != nil }

// Opened returns the number of decrypted frames and packets.
func (o *Opener) Opened() uint64 { return o.opened }

// CheckPublication returns an error if frames of a publication cannot be accepted: ErrUnknownScheme, ErrNoKey or
// ErrNotEncrypted. encrypted reports whether the frames must be opened.
func (o *Opener) CheckPublication(p *volumetric.Publication) (encrypted bool, err error) {
	switch {
	case p.Encryption == "" && o.keys != nil:
		return false, fmt.Errorf("%w: this client accepts encrypted publications only", ErrNotEncrypted)
	case p.Encryption == "":
		return false, nil
	case p.Encryption != Scheme:
		return true, fmt.Errorf("%w %q, expected %q", ErrUnknownScheme, p.Encryption, Scheme)
	case o.keys == nil:
		return true, fmt.Errorf("%w: the publication is encrypted from end to end", ErrNoKey)
	}
	return true, nil
}

// Open decrypts data of a participant in its own memory. The error wraps one of the reasons; sealed is then undefined.
func (o *Opener) Open(identity string, about Subject, sealed []byte) ([]byte, error) {
	if o.keys == nil {
		return nil, ErrNoKey
	}
	var header sframe.Header
	size, err := header.Parse(sealed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if rest := len(sealed) - size; rest < sframe.TagSize {
		return nil, fmt.Errorf("%w: %d bytes after the header, expected at least %d", ErrMalformed, rest,
			sframe.TagSize)
	}
	from := owner{identity, epochOf(header.KID)}
	known, err := o.keys.incoming(identity, from.epoch)
	if err != nil {
		return nil, err
	}
	s := o.senders[from]
	if s != nil && !s.secret.equal(known) {
		delete(o.senders, from)
		s = nil
	}
	session, err := s.session(header)
	if err != nil {
		return nil, err
	}
	if session == nil {
		// Nothing is kept of a session before the first frame has been decrypted.
		session = &incoming{key: known.key(identity, header.KID)}
	}
	data, err := session.key.Open(sealed, about.metadata())
	switch {
	case err != nil && s == nil:
		return nil, fmt.Errorf("%w: nothing of epoch %d could be decrypted", ErrWrongKey, from.epoch)
	case err != nil:
		return nil, fmt.Errorf("%w: frame %d of epoch %d is not authentic", ErrAltered, header.CTR, from.epoch)
	}
	if s == nil {
		if s, err = o.add(from, known); err != nil {
			return nil, err
		}
	}
	if err := s.keep(header.KID, session); err != nil {
		return nil, err
	}
	o.opened++
	session.used = o.opened
	session.received.add(header.CTR)
	return data, nil
}

// add records a sender from which a frame was decrypted.
func (o *Opener) add(from owner, known secret) (*sender, error) {
	if len(o.senders) >= maxSenders {
		for old := range o.senders {
			if _, err := o.keys.incoming(old.identity, old.epoch); err != nil {
				delete(o.senders, old)
			}
		}
	}
	if len(o.senders) >= maxSenders {
		return nil, fmt.Errorf("%w: %d participants and epochs are known, forget old epochs", ErrNoKey, maxSenders)
	}
	s := &sender{secret: known, sessions: make(map[uint64]*incoming), retired: make(map[uint64]struct{})}
	o.senders[from] = s
	return s, nil
}

// session returns the session of a frame, nil if it is not known. The error wraps ErrReplay. A nil sender has no
// sessions.
func (s *sender) session(header sframe.Header) (*incoming, error) {
	if s == nil {
		return nil, nil
	}
	if _, retired := s.retired[header.KID]; retired {
		return nil, fmt.Errorf("%w: the session has been replaced by %d others", ErrReplay, maxSessions)
	}
	session := s.sessions[header.KID]
	if session != nil && !session.received.fresh(header.CTR) {
		return nil, fmt.Errorf("%w: counter %d, the highest is %d", ErrReplay, header.CTR, session.received.highest)
	}
	return session, nil
}

// keep records a session from which a frame was decrypted, and retires the oldest one if there are too many.
func (s *sender) keep(kid uint64, session *incoming) error {
	if s.sessions[kid] != nil {
		return nil
	}
	if len(s.sessions) >= maxSessions {
		if len(s.retired) >= maxRetired {
			return fmt.Errorf("%w: the participant has had %d sessions in this epoch, begin another epoch", ErrReplay,
				maxRetired)
		}
		var oldest uint64
		for kid, other := range s.sessions {
			if first := s.sessions[oldest]; first == nil || other.used < first.used {
				oldest = kid
			}
		}
		delete(s.sessions, oldest)
		s.retired[oldest] = struct{}{}
	}
	s.sessions[kid] = session
	return nil
}
