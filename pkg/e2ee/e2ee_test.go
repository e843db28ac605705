package e2ee

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/volsfu/volsfu/pkg/sframe"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// vectors are the test vectors of docs/encryption.md, which another program has made.
type vectors struct {
	Passphrases []struct {
		Passphrase, Room string
		Secret           hexBytes
	}
	Sealed []struct {
		Name, Identity, Session, KID, Publication string
		Secret, Prefix, Plaintext, Ciphertext     hexBytes
		Base                                      hexBytes `json:"base_key"`
		Metadata                                  hexBytes
		Epoch                                     Epoch
		CTR                                       uint64
		Tile                                      int
		Quality                                   volumetric.Quality
		Number                                    uint32
	}
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

func read(t testing.TB) vectors {
	t.Helper()
	text, err := os.ReadFile("../sframe/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Volsfu vectors }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Volsfu.Passphrases) == 0 || len(file.Volsfu.Sealed) == 0 {
		t.Fatal("there are no vectors")
	}
	return file.Volsfu
}

func TestPassphraseVectors(t *testing.T) {
	for _, v := range read(t).Passphrases {
		secret, err := PassphraseSecret(v.Passphrase, v.Room)
		if err != nil || !bytes.Equal(secret, v.Secret) {
			t.Errorf("%q in %q: got %x, %v; expected %x", v.Passphrase, v.Room, secret, err, v.Secret)
		}
	}
	if _, err := PassphraseSecret("", "lab"); !errors.Is(err, ErrSecret) {
		t.Errorf("no passphrase: error is %v, expected ErrSecret", err)
	}
}

func TestSealedVectors(t *testing.T) {
	for _, v := range read(t).Sealed {
		about := Subject{Publication: v.Publication, Tile: v.Tile, Quality: v.Quality, Number: v.Number, Prefix: v.Prefix}
		if got := about.metadata(); !bytes.Equal(got, v.Metadata) {
			t.Errorf("%s: metadata is %x, expected %x", v.Name, got, v.Metadata)
		}
		if got := secret(v.Secret).baseKey(v.Identity, v.Epoch); !bytes.Equal(got, v.Base) {
			t.Errorf("%s: base key is %x, expected %x", v.Name, got, v.Base)
		}
		session, err := strconv.ParseUint(v.Session, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		keys := keysOf(t, v.Epoch, v.Secret)
		sealer := newSealer(keys, v.Identity, session)
		sealer.counter = v.CTR
		if got, err := sealer.Seal(nil, about, v.Plaintext); err != nil || !bytes.Equal(got, v.Ciphertext) {
			t.Errorf("%s: ciphertext is %x, %v; expected %x", v.Name, got, err, v.Ciphertext)
		}
		got, err := NewOpener(keys).Open(v.Identity, about, bytes.Clone(v.Ciphertext))
		if err != nil || !bytes.Equal(got, v.Plaintext) {
			t.Errorf("%s: plaintext is %x, %v; expected %x", v.Name, got, err, v.Plaintext)
		}
	}
}

// body is the subject of a frame.
func body(number uint32) Subject {
	return Subject{Publication: "body", Tile: 1, Quality: 2, Number: number, Prefix: []byte("drco\x00\x00\x00\x00\x00\x00\x00\x01")}
}

func keysOf(t testing.TB, epoch Epoch, secret []byte) *Keys {
	t.Helper()
	keys := new(Keys)
	if err := keys.SetSecret(epoch, secret); err != nil {
		t.Fatal(err)
	}
	return keys
}

func seal(t testing.TB, s *Sealer, about Subject, text string) []byte {
	t.Helper()
	sealed, err := s.Seal(nil, about, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(sealed) > len(text)+Overhead {
		t.Errorf("%d bytes became %d, expected at most %d more", len(text), len(sealed), Overhead)
	}
	return sealed
}

// open opens a copy of sealed.
func open(o *Opener, from string, about Subject, sealed []byte) (string, error) {
	data, err := o.Open(from, about, bytes.Clone(sealed))
	return string(data), err
}

var oneSecret, otherSecret = bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)

func TestSubjectsAreBound(t *testing.T) {
	keys := keysOf(t, 0, oneSecret)
	sealed := seal(t, NewSealer(keys, "alice"), body(7), "points")
	opener := NewOpener(keys)
	if got, err := open(opener, "alice", body(7), sealed); err != nil || got != "points" {
		t.Fatalf("got %q, %v", got, err)
	}
	for name, change := range map[string]func(s *Subject){
		"publication": func(s *Subject) { s.Publication = "head" },
		"tile":        func(s *Subject) { s.Tile++ },
		"quality":     func(s *Subject) { s.Quality-- },
		"number":      func(s *Subject) { s.Number++ },
		"codec":       func(s *Subject) { s.Prefix = bytes.Replace(s.Prefix, []byte("drco"), []byte("raw1"), 1) },
		"capture":     func(s *Subject) { s.Prefix = append(s.Prefix[:11:11], 2) },
		"kind":        func(s *Subject) { s.Prefix = nil },
	} {
		about := body(7)
		change(&about)
		fresh := NewOpener(keys)
		if _, err := open(fresh, "alice", about, sealed); !errors.Is(err, ErrWrongKey) {
			t.Errorf("another %s: error is %v, expected ErrWrongKey", name, err)
		}
	}
	if _, err := open(opener, "bob", body(7), sealed); !errors.Is(err, ErrWrongKey) {
		t.Errorf("another participant: error is %v, expected ErrWrongKey", err)
	}
}

func TestReasons(t *testing.T) {
	keys := keysOf(t, 3, oneSecret)
	sealer, opener := NewSealer(keys, "alice"), NewOpener(keys)
	first, second := seal(t, sealer, body(1), "one"), seal(t, sealer, body(2), "two")
	expect := func(what string, o *Opener, about Subject, sealed []byte, want error) {
		t.Helper()
		if _, err := open(o, "alice", about, sealed); !errors.Is(err, want) {
			t.Errorf("%s: error is %v, expected %v", what, err, want)
		}
	}
	expect("the first frame", opener, body(1), first, nil)
	expect("the first frame again", opener, body(1), first, ErrReplay)
	altered := bytes.Clone(second)
	altered[len(altered)-1] ^= 1
	expect("an altered frame", opener, body(2), altered, ErrAltered)
	expect("the second frame", opener, body(2), second, nil)
	expect("no keys", NewOpener(nil), body(2), second, ErrNoKey)
	expect("no secrets", NewOpener(new(Keys)), body(2), second, ErrNoKey)
	expect("another epoch", NewOpener(keysOf(t, 4, oneSecret)), body(2), second, ErrUnknownEpoch)
	expect("another secret", NewOpener(keysOf(t, 3, otherSecret)), body(2), second, ErrWrongKey)
	expect("plaintext", opener, body(2), []byte("tile!"), ErrMalformed)
	expect("nothing", opener, body(2), nil, ErrMalformed)
	others := new(Keys)
	if err := others.SetParticipantSecret("bob", 3, oneSecret); err != nil {
		t.Fatal(err)
	}
	expect("the secret of another participant alone", NewOpener(others), body(2), second, ErrNoKey)
	if opener.Opened() != 2 {
		t.Errorf("%d frames opened, expected 2", opener.Opened())
	}
}

func TestPublicationsAreChecked(t *testing.T) {
	keys := new(Keys)
	for _, test := range []struct {
		keys      *Keys
		scheme    string
		encrypted bool
		want      error
	}{
		{nil, "", false, nil},
		{nil, Scheme, true, ErrNoKey},
		{nil, "mls", true, ErrUnknownScheme},
		{keys, "", false, ErrNotEncrypted},
		{keys, Scheme, true, nil},
		{keys, "mls", true, ErrUnknownScheme},
	} {
		encrypted, err := NewOpener(test.keys).CheckPublication(&volumetric.Publication{Encryption: test.scheme})
		if encrypted != test.encrypted || !errors.Is(err, test.want) {
			t.Errorf("%q, keys %v: got %v, %v; expected %v, %v", test.scheme, test.keys != nil, encrypted, err,
				test.encrypted, test.want)
		}
	}
}

// TestSessionsNeverShareKeysAndNonces seals the same frame in many sessions of one participant with one secret.
func TestSessionsNeverShareKeysAndNonces(t *testing.T) {
	keys := keysOf(t, 0, oneSecret)
	seen := map[string]bool{}
	for range 200 {
		sealed := seal(t, NewSealer(keys, "alice"), body(1), "the same frame in every session")
		var header sframe.Header
		size, err := header.Parse(sealed)
		if err != nil || header.CTR != 0 || epochOf(header.KID) != 0 {
			t.Fatalf("header %+v, %v", header, err)
		}
		if text := string(sealed[size:]); seen[text] {
			t.Fatal("two sessions made the same ciphertext")
		} else {
			seen[text] = true
		}
	}
}

func TestRotation(t *testing.T) {
	alice, leaver, carol := keysOf(t, 0, oneSecret), keysOf(t, 0, oneSecret), keysOf(t, 0, oneSecret)
	sealer, left, stays := NewSealer(alice, "alice"), NewOpener(leaver), NewOpener(carol)
	old := seal(t, sealer, body(1), "one")
	if _, err := open(left, "alice", body(1), old); err != nil {
		t.Fatal(err)
	}
	// All who stay set the new secret, then use it, then forget the old one. No frame is lost.
	for _, keys := range []*Keys{alice, carol} {
		if err := keys.SetSecret(1, otherSecret); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open(stays, "alice", body(2), seal(t, sealer, body(2), "two")); err != nil {
		t.Errorf("a frame of the old epoch after the secret was set: %v", err)
	}
	if err := alice.Use(1); err != nil {
		t.Fatal(err)
	}
	after := seal(t, sealer, body(3), "three")
	if got, err := open(stays, "alice", body(3), after); err != nil || got != "three" {
		t.Errorf("a frame of the new epoch: got %q, %v", got, err)
	}
	if _, err := open(left, "alice", body(3), after); !errors.Is(err, ErrUnknownEpoch) {
		t.Errorf("the leaver: error is %v, expected ErrUnknownEpoch", err)
	}
	// The leaver's secret does not serve under the new epoch's number either.
	if err := leaver.SetSecret(1, oneSecret); err != nil {
		t.Fatal(err)
	}
	if _, err := open(left, "alice", body(3), after); !errors.Is(err, ErrWrongKey) {
		t.Errorf("the leaver with the old secret: error is %v, expected ErrWrongKey", err)
	}
	// Frames that the leaver makes in the name of alice are refused once the old epoch is forgotten.
	forged := seal(t, NewSealer(leaver, "alice"), body(4), "forged")
	carol.Forget(0)
	if _, err := open(stays, "alice", body(4), forged); !errors.Is(err, ErrUnknownEpoch) {
		t.Errorf("a frame of the leaver: error is %v, expected ErrUnknownEpoch", err)
	}
	alice.Forget(1)
	if _, err := sealer.Seal(nil, body(5), nil); !errors.Is(err, ErrNoKey) {
		t.Errorf("sending without a secret: error is %v, expected ErrNoKey", err)
	}
}

func TestSecretsAreChecked(t *testing.T) {
	keys := new(Keys)
	for what, err := range map[string]error{
		"a short secret":  keys.SetSecret(0, make([]byte, MinSecret-1)),
		"no name":         keys.SetParticipantSecret("", 0, oneSecret),
		"an absent epoch": keys.Use(5),
	} {
		if !errors.Is(err, ErrSecret) {
			t.Errorf("%s: error is %v, expected ErrSecret", what, err)
		}
	}
	if _, err := NewSealer(keys, "alice").Seal(nil, body(1), nil); !errors.Is(err, ErrNoKey) {
		t.Errorf("no secret: error is %v, expected ErrNoKey", err)
	}
}

func TestParticipantSecretsComeFirst(t *testing.T) {
	all, own := keysOf(t, 0, oneSecret), keysOf(t, 0, oneSecret)
	if err := own.SetParticipantSecret("alice", 0, otherSecret); err != nil {
		t.Fatal(err)
	}
	sealed := seal(t, NewSealer(own, "alice"), body(1), "one")
	if _, err := open(NewOpener(all), "alice", body(1), sealed); !errors.Is(err, ErrWrongKey) {
		t.Errorf("error is %v, expected ErrWrongKey", err)
	}
	if _, err := open(NewOpener(own), "alice", body(1), sealed); err != nil {
		t.Error(err)
	}
	if _, err := open(NewOpener(own), "bob", body(1), seal(t, NewSealer(all, "bob"), body(1), "one")); err != nil {
		t.Error(err)
	}
}

// TestReplaysOfFormerSessions lets a participant join more often than sessions are kept. Frames of the former sessions
// are refused. A secret that is set again keeps what is known.
func TestReplaysOfFormerSessions(t *testing.T) {
	keys := keysOf(t, 0, oneSecret)
	opener := NewOpener(keys)
	var old [][]byte
	for range maxSessions + 3 {
		sealed := seal(t, NewSealer(keys, "alice"), body(1), "one")
		if _, err := open(opener, "alice", body(1), sealed); err != nil {
			t.Fatal(err)
		}
		old = append(old, sealed)
	}
	if err := keys.SetSecret(0, oneSecret); err != nil {
		t.Fatal(err)
	}
	for i, sealed := range old {
		if _, err := open(opener, "alice", body(1), sealed); !errors.Is(err, ErrReplay) {
			t.Errorf("session %d: error is %v, expected ErrReplay", i, err)
		}
	}
	if s := opener.senders[owner{"alice", 0}]; len(s.sessions) != maxSessions || len(s.retired) != 3 {
		t.Errorf("%d sessions and %d retired, expected %d and 3", len(s.sessions), len(s.retired), maxSessions)
	}
}

// TestUnauthenticDataLeavesNothing opens forged frames of many participants and sessions.
func TestUnauthenticDataLeavesNothing(t *testing.T) {
	opener, forger := NewOpener(keysOf(t, 0, oneSecret)), keysOf(t, 0, otherSecret)
	for i := range 100 {
		name := strconv.Itoa(i)
		if _, err := open(opener, name, body(1), seal(t, NewSealer(forger, name), body(1), "one")); err == nil {
			t.Fatal("a forged frame was accepted")
		}
	}
	if len(opener.senders) != 0 {
		t.Errorf("%d senders are recorded, expected none", len(opener.senders))
	}
}

// TestSendersAreBounded opens frames of more participants than are recorded.
func TestSendersAreBounded(t *testing.T) {
	keys := keysOf(t, 0, oneSecret)
	opener := NewOpener(keys)
	from := func(i int, epoch Epoch) error {
		name := strconv.Itoa(i)
		_, err := open(opener, name, body(1), seal(t, NewSealer(keysOf(t, epoch, oneSecret), name), body(1), "one"))
		return err
	}
	for i := range maxSenders {
		if err := from(i, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := from(maxSenders, 0); err == nil {
		t.Errorf("participant %d was accepted", maxSenders)
	}
	if err := keys.SetSecret(1, oneSecret); err != nil {
		t.Fatal(err)
	}
	keys.Forget(0)
	if err := from(maxSenders, 1); err != nil || len(opener.senders) != 1 {
		t.Errorf("after the old epoch was forgotten: %v, %d senders", err, len(opener.senders))
	}
}

func TestWindow(t *testing.T) {
	for _, test := range []struct {
		name  string
		order []uint64
		fresh []bool
	}{
		{"in order", []uint64{0, 1, 2, 1, 0}, []bool{true, true, true, false, false}},
		{"out of order", []uint64{5, 3, 4, 3, 5}, []bool{true, true, true, false, false}},
		{"far behind", []uint64{windowSize, 0, 1, 1}, []bool{true, false, true, false}},
		{"a jump beyond the window", []uint64{3, 4 * windowSize, 3*windowSize + 3, 3*windowSize + 1, 3 * windowSize},
			[]bool{true, true, true, true, false}},
		{"the highest counter", []uint64{1<<64 - 1, 1<<64 - 2, 1<<64 - 1}, []bool{true, true, false}},
		{"reuse of a bit", []uint64{0, windowSize - 1, windowSize, windowSize + 1, 1},
			[]bool{true, true, true, true, false}},
	} {
		var w window
		for i, counter := range test.order {
			if got := w.fresh(counter); got != test.fresh[i] {
				t.Errorf("%s: counter %d (%d): fresh is %v", test.name, counter, i, got)
			}
			if test.fresh[i] {
				w.add(counter)
			}
		}
	}
}

// FuzzWindow compares the window with a set of all counters.
func FuzzWindow(f *testing.F) {
	f.Add([]byte{1, 0, 255, 3, 7, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var w window
		seen, highest := map[uint64]bool{}, uint64(0)
		counter := uint64(windowSize)
		for i := 0; i+1 < len(steps); i += 2 {
			// Steps of different sizes, forwards and backwards.
			step := uint64(steps[i+1]&0x7f) << (steps[i] % 12)
			if steps[i+1]&0x80 != 0 {
				counter -= min(counter, step)
			} else {
				counter += step
			}
			want := !seen[counter] && (len(seen) == 0 || counter > highest || highest-counter < windowSize)
			if w.fresh(counter) != want {
				t.Fatalf("step %d: counter %d, highest %d: fresh is %v", i, counter, highest, !want)
			}
			if want {
				w.add(counter)
				seen[counter], highest = true, max(highest, counter)
			}
		}
	})
}

// FuzzOpen opens arbitrary data of a participant. Only the frame that the participant made is accepted, and only once.
func FuzzOpen(f *testing.F) {
	keys := keysOf(f, 0, oneSecret)
	genuine := seal(f, NewSealer(keys, "alice"), body(1), "one")
	f.Add(genuine, "alice", uint32(1))
	f.Add([]byte("tile!"), "bob", uint32(2))
	f.Fuzz(func(t *testing.T, data []byte, from string, number uint32) {
		opener := NewOpener(keys)
		same := bytes.Equal(data, genuine) && from == "alice" && number == 1
		_, err := open(opener, from, body(number), data)
		if (err == nil) != same {
			t.Fatalf("%x of %q, %d: error is %v", data, from, number, err)
		}
		var refusals Refusals
		if refusals.Add(err); err != nil && refusals.Total() != 1 {
			t.Errorf("the error %v has no reason", err)
		}
		if _, err := open(opener, from, body(number), data); err == nil {
			t.Errorf("%x was accepted again", data)
		}
	})
}
