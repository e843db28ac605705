package sfu

import (
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
)

// brings joins with a token.
func brings(n *Node, room, identity string, token admission.Token) (*shelf, *signal.Error) {
	o := &shelf{}
	_, refused := n.Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version}, Room: room, Identity: identity, Token: token, Outbox: o,
		At: time.Now(),
	})
	return o, refused
}

// codeOf returns the code of a refusal, empty if there is none.
func codeOf(refused *signal.Error) signal.Code {
	if refused == nil {
		return ""
	}
	return refused.Code
}

// TestBan checks that a banned participant cannot enter the room under its identity, or with its token under any
// identity, until the ban ends.
func TestBan(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	eve := admission.Token{ID: "e"}
	o, refused := brings(n, "room", "eve", eve)
	if refused != nil {
		t.Fatal(refused)
	}
	if err := n.Kick(t.Context(), "room", "eve", time.Hour); err != nil {
		t.Fatal(err)
	}
	if code, _ := o.ended(); code != signal.CodeKicked {
		t.Errorf("closed with %q, expected %q", code, signal.CodeKicked)
	}
	for _, test := range []struct {
		room, identity string
		token          admission.Token
		code           signal.Code
	}{
		{"room", "eve", eve, signal.CodeKicked},
		{"room", "eve", admission.Token{}, signal.CodeKicked},
		{"room", "another", eve, signal.CodeKicked},
		{"room", "ada", admission.Token{ID: "a"}, ""},
		{"attic", "eve", eve, ""},
	} {
		if _, refused := brings(n, test.room, test.identity, test.token); codeOf(refused) != test.code {
			t.Errorf("%s in %s by token %q: %v, expected the code %q", test.identity, test.room, test.token.ID, refused,
				test.code)
		}
	}
	if bans := n.Bans(); len(bans) != 1 || bans[0].Room != "room" || bans[0].Identity != "eve" ||
		bans[0].TokenID != "e" {
		t.Errorf("the bans are %+v", bans)
	}
	if err := n.Unban("room", "eve"); err != nil {
		t.Error(err)
	}
	if _, refused := brings(n, "room", "eve", eve); refused != nil {
		t.Errorf("after the ban: %v", refused)
	}
	if err := n.Unban("room", "eve"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a second end of the ban: %v", err)
	}
	// A participant that is not present can be banned. Without a ban, its removal is an error.
	if err := n.Kick(t.Context(), "nowhere", "mallory", time.Hour); err != nil {
		t.Error(err)
	}
	if _, refused := brings(n, "nowhere", "mallory", admission.Token{}); codeOf(refused) != signal.CodeKicked {
		t.Errorf("join of a participant that was banned while absent: %v", refused)
	}
	if err := n.Kick(t.Context(), "nowhere", "mallory", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("removal of an absent participant: %v", err)
	}
	for _, lasts := range []time.Duration{-1, admission.MaxBan + 1} {
		if err := n.Kick(t.Context(), "room", "eve", lasts); !errors.Is(err, admission.ErrExclusion) {
			t.Errorf("a ban of %v: %v", lasts, err)
		}
	}
}

// TestRevokedToken checks that a revocation ends the sessions of the token, including sessions in their grace time, and
// prevents joins and resumes.
func TestRevokedToken(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	token := admission.Token{ID: "e", Expires: time.Now().Add(time.Hour)}
	here, refused := brings(n, "room", "eve", token)
	if refused != nil {
		t.Fatal(refused)
	}
	other, refused := brings(n, "room", "ada", admission.Token{ID: "a"})
	if refused != nil {
		t.Fatal(refused)
	}
	if err := n.Revoke("e", 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { code, _ := here.ended(); return code == signal.CodeRevoked },
		"the end of a session by a revoked token")
	if code, over := other.ended(); over {
		t.Errorf("a session by another token was closed with %q", code)
	}
	if _, refused := brings(n, "attic", "eve", token); codeOf(refused) != signal.CodeRevoked {
		t.Errorf("joined by a revoked token: %v", refused)
	}
	joined := expect[*signal.Joined](t, other, 1)
	_, refused = n.Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version,
			Resume: &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret}},
		Room: "room", Identity: "ada", Token: token, Outbox: &shelf{}, At: time.Now(),
	})
	if codeOf(refused) != signal.CodeRevoked {
		t.Errorf("resumed by a revoked token: %v", refused)
	}
	list := n.Revocations()
	if len(list) != 1 || !list[0].Seen || list[0].Until.Before(token.Expires) {
		t.Errorf("the revocations are %+v, expected one until the token has ended", list)
	}
	if err := n.Restore("e"); err != nil {
		t.Error(err)
	}
	if _, refused := brings(n, "room", "eve", token); refused != nil {
		t.Errorf("after the revocation: %v", refused)
	}
	if err := n.Restore("e"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a second end of the revocation: %v", err)
	}
	for _, id := range []string{"", string(make([]byte, admission.MaxTokenID+1))} {
		if err := n.Revoke(id, 0); !errors.Is(err, admission.ErrExclusion) {
			t.Errorf("an id of %d bytes: %v", len(id), err)
		}
	}
	if err := n.Revoke("e", admission.MaxRevocation+1); !errors.Is(err, admission.ErrExclusion) {
		t.Errorf("a revocation for too long: %v", err)
	}
}
