package admission

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// start is the beginning of virtual time.
var start = time.Unix(1_795_188_600, 0)

// TestExclusionsAreBounded checks the limits of bans and revocations, and that expired entries are removed first.
func TestExclusionsAreBounded(t *testing.T) {
	var e Exclusions
	soon, late := start.Add(time.Minute), start.Add(time.Hour)
	for i := range maxBans {
		if err := e.Ban(Ban{Room: "room", Identity: fmt.Sprint(i), TokenID: fmt.Sprint(i), Until: soon},
			start); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxRevocations {
		if err := e.Revoke(fmt.Sprint(i), soon, start); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Ban(Ban{Room: "room", Identity: "eve", Until: late}, start); !errors.Is(err, ErrFull) {
		t.Errorf("one ban too many: %v", err)
	}
	if err := e.Ban(Ban{Room: "room", Identity: "7", Until: late}, start); err != nil {
		t.Errorf("a ban that replaces one: %v", err)
	}
	if err := e.Revoke("eve", late, start); !errors.Is(err, ErrFull) {
		t.Errorf("one revocation too many: %v", err)
	}
	if err := e.Ban(Ban{Room: "room", Identity: "eve", Until: late}, soon); err != nil {
		t.Error(err)
	}
	if err := e.Revoke("eve", late, soon); err != nil {
		t.Error(err)
	}
	// The ban of 7 has kept the token of the ban that it replaced.
	if len(e.bans) != 2 || len(e.byToken) != 1 || len(e.revoked) != 1 {
		t.Errorf("kept are %d bans, %d by token, and %d revocations, expected 2, 1 and 1", len(e.bans), len(e.byToken),
			len(e.revoked))
	}
	if len(e.Bans(late)) != 0 || len(e.Revocations(late)) != 0 {
		t.Error("expired entries are listed")
	}
	// A revoked token that the server sees stays revoked until its expiry, even if the expiry is later than the
	// default.
	month := start.Add(31 * 24 * time.Hour)
	if !e.Revoked(Token{ID: "eve", Expires: month}, soon) || !e.Revoked(Token{ID: "eve", Expires: month}, month) {
		t.Error("a token that has not ended is accepted again")
	}
	if e.Revoked(Token{ID: "eve", Expires: month}, month.Add(clockDifference)) || e.Revoked(Token{}, soon) {
		t.Error("a token that has ended, or none, is revoked")
	}
}

// TestAnExpiredRevocationIsReplaced revokes the id of a token once more after the token has expired: another token has
// the id.
func TestAnExpiredRevocationIsReplaced(t *testing.T) {
	var e Exclusions
	first := Token{ID: "phone", Expires: start.Add(time.Minute)}
	if err := e.Revoke(first.ID, start.Add(time.Hour), start); err != nil {
		t.Fatal(err)
	}
	if !e.Revoked(first, start) {
		t.Fatal("a revoked token is accepted")
	}
	later := start.Add(30 * time.Minute)
	second := Token{ID: first.ID, Expires: later.Add(time.Hour)}
	if e.Revoked(second, later) {
		t.Fatal("a token is revoked after the end of the revocation")
	}
	if err := e.Revoke(second.ID, later.Add(time.Minute), later); err != nil {
		t.Fatal(err)
	}
	if !e.Revoked(second, later) || !e.Revoked(second, second.Expires) {
		t.Error("a token whose id was revoked again is accepted")
	}
}

// TestParticipantsWithOneToken bans participants who share a token: each ban excludes the token until it ends.
func TestParticipantsWithOneToken(t *testing.T) {
	var e Exclusions
	for _, b := range []Ban{
		{Identity: "eve", Until: start.Add(24 * time.Hour)},
		{Identity: "ada", Until: start.Add(time.Hour)},
		{Identity: "bob", Until: start.Add(48 * time.Hour)},
	} {
		b.Room, b.TokenID = "room", "shared"
		if err := e.Ban(b, start); err != nil {
			t.Fatal(err)
		}
	}
	// The ban of ada has expired, and that of bob is ended. The ban of eve stays.
	later := start.Add(2 * time.Hour)
	if !e.Unban("room", "bob", later) {
		t.Error("the ban of bob was not in force")
	}
	if e.Refuse("room", "mallory", Token{ID: "shared"}, later) == nil {
		t.Error("a token is accepted while a participant with the token is banned")
	}
	if !e.Unban("room", "eve", later) {
		t.Error("the ban of eve was not in force")
	}
	if refused := e.Refuse("room", "mallory", Token{ID: "shared"}, later); refused != nil {
		t.Errorf("the token is refused after the end of all bans: %v", refused)
	}
}
