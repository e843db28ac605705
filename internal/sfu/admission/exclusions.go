package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of bans and revocations.
var (
	// ErrExclusion is wrapped with the wrong value of a ban or a revocation and the expected value.
	ErrExclusion = errors.New("invalid ban or revocation")
	// ErrFull reports that the maximum number of bans or revocations is reached.
	ErrFull = errors.New("too many bans or revocations")
)

const (
	// maxBans bounds the bans. One ban has the names of a room and a participant, of 128 bytes each, and the id of a
	// token, of MaxTokenID bytes, in up to two entries of 500 bytes beside the texts: 8,192 bans use 12 MB at most.
	maxBans = 1 << 13
	// maxRevocations bounds the revoked tokens: 16,384 entries of up to MaxTokenID bytes and 100 bytes overhead use 6
	// MB.
	maxRevocations = 1 << 14
	// MaxTokenID is the maximum length of the id of a revoked token, in bytes. A UUID has 36.
	MaxTokenID = 256
	// MaxBan bounds the duration of a ban. For a room, a month is as good as forever.
	MaxBan = 30 * 24 * time.Hour
	// DefaultRevocation is the duration of the revocation of a token that the server has not seen: 30 times the default
	// lifetime of tokens of "volsfu token".
	DefaultRevocation = 30 * 24 * time.Hour
	// MaxRevocation bounds the duration that an operator may request.
	MaxRevocation = 366 * 24 * time.Hour
	// clockDifference is the time for which a token may still be accepted after its expiry: the greatest clock
	// difference that auth.Config allows.
	clockDifference = 5 * time.Minute
)

// Ban excludes a participant from a room for a time.
type Ban struct {
	Room     string `json:"room"`
	Identity string `json:"identity"`
	// TokenID is the id of the participant's token at the time of its removal. The ban excludes the token from the room
	// under any identity. TokenID is empty if the participant was not in the room or its token had no id.
	TokenID string    `json:"token_id,omitempty"`
	Until   time.Time `json:"until"`
}

// Revocation is a token that is not accepted.
type Revocation struct {
	ID string `json:"id"`
	// Until is the time at which the token expires, if the server has seen the token; otherwise the time at which the
	// revocation ends.
	Until time.Time `json:"until"`
	// Seen reports whether the server has seen the token since the revocation, and so knows when the token expires.
	Seen bool `json:"seen"`
}

// Exclusions are the bans and revocations of a node, held only in memory. The zero value has none. Exclusions is safe
// for concurrent use.
type Exclusions struct {
	mu sync.Mutex
	// bans is indexed by identity. byToken has the same bans by token id; several participants may have one token.
	// revoked is indexed by token id.
	bans    map[seat]*Ban
	byToken map[seat][]*Ban
	revoked map[string]*Revocation
}

// seat is an identity, or the id of a token, in a room.
type seat struct{ room, name string }

// Ban adds a ban or replaces the ban of the same identity in the room. A ban without a token keeps the token of a ban
// in force that it replaces: another node may know the token. The error wraps ErrFull.
func (e *Exclusions) Ban(b Ban, now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bans == nil {
		e.bans, e.byToken = make(map[seat]*Ban), make(map[seat][]*Ban)
	}
	at := seat{b.Room, b.Identity}
	if len(e.bans) >= maxBans && e.bans[at] == nil {
		for _, old := range e.bans {
			if !old.Until.After(now) {
				e.drop(old)
			}
		}
		if len(e.bans) >= maxBans {
			return fmt.Errorf("%w: %d bans are in force", ErrFull, maxBans)
		}
	}
	if before := e.bans[at]; before != nil {
		if b.TokenID == "" && before.Until.After(now) {
			b.TokenID = before.TokenID
		}
		e.drop(before)
	}
	e.bans[at] = &b
	if b.TokenID != "" {
		token := seat{b.Room, b.TokenID}
		e.byToken[token] = append(e.byToken[token], &b)
	}
	return nil
}

// drop removes a ban. The caller holds the mutex.
func (e *Exclusions) drop(b *Ban) {
	delete(e.bans, seat{b.Room, b.Identity})
	token := seat{b.Room, b.TokenID}
	rest := slices.DeleteFunc(e.byToken[token], func(other *Ban) bool { return other == b })
	if len(rest) == 0 {
		delete(e.byToken, token)
		return
	}
	e.byToken[token] = rest
}

// Unban ends the ban of an identity and reports whether the ban was in force.
func (e *Exclusions) Unban(room, identity string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.bans[seat{room, identity}]
	if b == nil {
		return false
	}
	e.drop(b)
	return b.Until.After(now)
}

// banned returns the ban that excludes an identity or a token from a room, false if there is none.
func (e *Exclusions) banned(room, identity, tokenID string, now time.Time) (Ban, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.bans[seat{room, identity}]; b != nil && b.Until.After(now) {
		return *b, true
	}
	for _, b := range e.byToken[seat{room, tokenID}] {
		if b.Until.After(now) {
			return *b, true
		}
	}
	return Ban{}, false
}

// Bans returns the bans in force, sorted by room and identity.
func (e *Exclusions) Bans(now time.Time) []Ban {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := []Ban{}
	for _, b := range e.bans {
		if b.Until.After(now) {
			list = append(list, *b)
		}
	}
	slices.SortFunc(list, func(a, b Ban) int {
		if c := strings.Compare(a.Room, b.Room); c != 0 {
			return c
		}
		return strings.Compare(a.Identity, b.Identity)
	})
	return list
}

// Revoke adds a revocation or extends the revocation of the same token. An expired revocation is replaced: another
// token may have the same id. The error wraps ErrFull.
func (e *Exclusions) Revoke(id string, until, now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.revoked == nil {
		e.revoked = make(map[string]*Revocation)
	}
	if before := e.revoked[id]; before != nil && before.Until.After(now) {
		if !before.Seen && until.After(before.Until) {
			before.Until = until
		}
		return nil
	}
	if len(e.revoked) >= maxRevocations {
		for id, old := range e.revoked {
			if !old.Until.After(now) {
				delete(e.revoked, id)
			}
		}
		if len(e.revoked) >= maxRevocations {
			return fmt.Errorf("%w: %d revocations are in force: replace the key that signed the tokens", ErrFull,
				maxRevocations)
		}
	}
	e.revoked[id] = &Revocation{ID: id, Until: until}
	return nil
}

// Revoked reports whether a client's token is revoked. When a client presents a revoked token, the end of the
// revocation becomes the expiry of the token.
func (e *Exclusions) Revoked(t Token, now time.Time) bool {
	if t.ID == "" {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.revoked[t.ID]
	if r == nil || !r.Until.After(now) {
		return false
	}
	// Two tokens may have the same id. The later expiry counts.
	if until := t.Expires.Add(clockDifference); !t.Expires.IsZero() && (!r.Seen || until.After(r.Until)) {
		r.Until, r.Seen = until, true
	}
	return true
}

// Restore ends a revocation and reports whether the revocation was in force.
func (e *Exclusions) Restore(id string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.revoked[id]
	delete(e.revoked, id)
	return r != nil && r.Until.After(now)
}

// Revocations returns the revocations in force, sorted by id.
func (e *Exclusions) Revocations(now time.Time) []Revocation {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := []Revocation{}
	for _, r := range e.revoked {
		if r.Until.After(now) {
			list = append(list, *r)
		}
	}
	slices.SortFunc(list, func(a, b Revocation) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Refuse returns an error if a ban or a revocation excludes the client from the room, nil otherwise.
func (e *Exclusions) Refuse(room, identity string, t Token, now time.Time) *signal.Error {
	if e.Revoked(t, now) {
		return signal.Errorf(signal.CodeRevoked, "an operator revoked the token")
	}
	if b, found := e.banned(room, identity, t.ID, now); found {
		return signal.Errorf(signal.CodeKicked, "an operator banned %q from room %q until %s", b.Identity, b.Room,
			b.Until.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckBan returns an error if a ban lasts too long or has an invalid room or identity. The error wraps ErrExclusion.
func CheckBan(room, identity string, lasts time.Duration) error {
	if lasts < 0 || lasts > MaxBan {
		return fmt.Errorf("%w: the ban lasts %v, expected 0 to %v", ErrExclusion, lasts, MaxBan)
	}
	for what, name := range map[string]string{"room": room, "identity": identity} {
		if err := volumetric.ValidateName(what, name); err != nil {
			return fmt.Errorf("%w: %w", ErrExclusion, err)
		}
	}
	return nil
}

// CheckRevocation returns an error if the id of a token is empty or too long, or if a revocation lasts too long. The
// error wraps ErrExclusion.
func CheckRevocation(id string, lasts time.Duration) error {
	if id == "" || len(id) > MaxTokenID {
		return fmt.Errorf("%w: the id of a token has %d bytes, expected 1 to %d", ErrExclusion, len(id), MaxTokenID)
	}
	if lasts < 0 || lasts > MaxRevocation {
		return fmt.Errorf("%w: the revocation lasts %v, expected 0 to %v", ErrExclusion, lasts, MaxRevocation)
	}
	return nil
}
