package ticket

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
)

var now = time.Unix(1_795_188_600, 0)

// sealer returns a sealer whose secret consists of one byte.
func sealer(t testing.TB, b byte) *Sealer {
	t.Helper()
	s, err := NewSealer(bytes.Repeat([]byte{b}, SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// example is a ticket with all fields.
func example() Ticket {
	return Ticket{
		Kind: Resume, Session: strings.Repeat("S", 26), Secret: strings.Repeat("Z", 26), Room: "hall", Identity: "ann",
		Grants: Publish | Subscribe, Home: "node-1", Incarnation: 7, Epoch: 3, Expires: now.Add(time.Hour),
	}
}

// seal seals a ticket.
func seal(t testing.TB, s *Sealer, ticket Ticket) string {
	t.Helper()
	text, err := s.Seal(ticket, now)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTicketsOfTheClusterOpen also opens the longest ticket, and checks that two tickets with one content differ.
func TestTicketsOfTheClusterOpen(t *testing.T) {
	here, there := sealer(t, 1), sealer(t, 1)
	longest := example()
	for _, text := range []*string{&longest.Session, &longest.Secret, &longest.Room, &longest.Identity, &longest.Home} {
		*text = strings.Repeat("n", maxText)
	}
	for _, want := range []Ticket{example(), longest, {Kind: Entry, Expires: now.Add(time.Second)}} {
		text := seal(t, here, want)
		if len(text) > MaxLength {
			t.Errorf("%d characters, expected at most %d", len(text), MaxLength)
		}
		if got, err := there.Open(text, now); err != nil || got != want {
			t.Errorf("%v: got %+v, expected %+v", err, got, want)
		}
		if text == seal(t, here, want) {
			t.Error("a nonce was used twice")
		}
	}
	longest.Room += "n"
	if text, err := here.Seal(longest, now); !errors.Is(err, ErrInvalid) {
		t.Errorf("a room of %d bytes: %q, %v", len(longest.Room), text, err)
	}
}

// TestForeignTicketsAreRefused opens tickets of another cluster, expired tickets and changed tickets.
func TestForeignTicketsAreRefused(t *testing.T) {
	s := sealer(t, 1)
	text := seal(t, s, example())
	refused := map[string]string{
		"another cluster": seal(t, sealer(t, 2), example()), "nothing": "", "a secret": "RZ4LX6TQM2HVKD7NPCWBY3JGEA",
		"a long text": strings.Repeat("A", MaxLength+1), "a part": text[:len(text)-4],
	}
	for name, text := range refused {
		if got, err := s.Open(text, now); !errors.Is(err, ErrInvalid) || got != (Ticket{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	_, err := s.Open(text, now.Add(time.Hour))
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired ticket: %v", err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		if _, err := s.Open(base64.RawURLEncoding.EncodeToString(changed), now); !errors.Is(err, ErrInvalid) {
			t.Fatalf("byte %d was changed: %v", i, err)
		}
	}
}

// TestTwoSecretsAreValid changes the secret three times. The same secret again changes nothing.
func TestTwoSecretsAreValid(t *testing.T) {
	s := sealer(t, 1)
	first := seal(t, s, example())
	for range 2 {
		if err := s.SetSecret(bytes.Repeat([]byte{2}, SecretBytes)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Open(first, now); err != nil {
		t.Errorf("a ticket of the former secret: %v", err)
	}
	second := seal(t, s, example())
	if _, err := sealer(t, 2).Open(second, now); err != nil {
		t.Errorf("tickets are not sealed with the new secret: %v", err)
	}
	if err := s.SetSecret(bytes.Repeat([]byte{3}, SecretBytes)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(first, now); !errors.Is(err, ErrInvalid) {
		t.Errorf("a ticket of the secret before the former: %v", err)
	}
	if _, err := s.Open(second, now); err != nil {
		t.Errorf("a ticket of the former secret: %v", err)
	}
	for _, wrong := range [][]byte{nil, make([]byte, 16)} {
		if _, err := NewSealer(wrong); !errors.Is(err, ErrSecret) {
			t.Errorf("a secret of %d bytes: %v", len(wrong), err)
		}
	}
}

// TestKeysChangeByTheHour opens a ticket that does not expire at other times.
func TestKeysChangeByTheHour(t *testing.T) {
	s := sealer(t, 1)
	ticket := example()
	ticket.Expires = now.Add(1000 * time.Hour)
	text := seal(t, s, ticket)
	for hours, valid := range map[int]bool{-2: false, -1: true, 0: true, 1: true, 24: true, 25: false, 500: false} {
		content, err := s.Open(text, now.Add(time.Duration(hours)*time.Hour))
		if expired := errors.Is(err, ErrExpired); expired != (hours > 24) || expired && content.Session == "" {
			t.Errorf("after %d hours: the content is %+v, %v", hours, content, err)
		}
		if valid != (err == nil) || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("after %d hours: %v", hours, err)
		}
	}
	for i := range 100 {
		if _, err := s.Seal(ticket, now.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.secrets[0].keys); n > int(formerHours+laterHours)+1 {
		t.Errorf("%d keys are kept", n)
	}
	keys, err := s.keys(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	others, err := s.keys(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, nonceBytes)
	if bytes.Equal(keys[0].Seal(nil, nonce, nil, nil), others[0].Seal(nil, nonce, nil, nil)) {
		t.Error("two hours have the same key")
	}
}

// FuzzOpen opens foreign texts, and parses contents as they would be inside a ticket.
func FuzzOpen(f *testing.F) {
	s := sealer(f, 1)
	text := seal(f, s, example())
	f.Add([]byte(text))
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		f.Fatal(err)
	}
	content, err := s.open(raw, hourOf(now))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte("AQ"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := s.Open(string(data), now); err == nil && got.Room != "hall" {
			t.Errorf("%q opens as %+v", data, got)
		}
		if ticket, ok := parse(data); ok {
			ticket.Expires = now.Add(time.Minute)
			if got, err := s.Open(seal(t, s, ticket), now); err != nil || got != ticket {
				t.Errorf("%+v opens as %+v, %v", ticket, got, err)
			}
		}
	})
}
