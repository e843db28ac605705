package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The key and the signature of the Standard Webhooks specification's example.
const (
	vectorKey       = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

var (
	vectorTime = time.Unix(1614265330, 0)
	otherKey   = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
)

// TestVector checks the signature of the specification's example.
func TestVector(t *testing.T) {
	key, err := ParseKey(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	if got := key.Sign(vectorID, vectorTime, []byte(vectorBody)); got != vectorSignature {
		t.Errorf("the signature is %s, expected %s", got, vectorSignature)
	}
	for _, text := range []string{key.String(), fmt.Sprintf("%v %+v %#v %s", key, key, key, key)} {
		if strings.Contains(text, "MfKQ") || strings.Contains(text, string(key.secret)) {
			t.Errorf("%q shows the key", text)
		}
	}
}

func TestVerify(t *testing.T) {
	r, err := NewReceiver(otherKey, vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name                 string
		id, stamp, signature string
		body                 string
		after                time.Duration
		err                  error
	}{
		{name: "genuine"},
		{name: "late, but within the tolerance", after: Tolerance},
		{name: "early, but within the tolerance", after: -Tolerance},
		{name: "replayed", after: Tolerance + time.Second, err: ErrTimestamp},
		{name: "of the future", after: -Tolerance - time.Second, err: ErrTimestamp},
		{name: "with signatures of other keys and versions before",
			signature: "v1a,AAAA v2,BBBB v1,%%% v1,AAAA " + vectorSignature},
		{name: "another body", body: `{"test": 2432232315}`, err: ErrSignature},
		{name: "another id", id: "msg_x", err: ErrSignature},
		{name: "another time", stamp: "1614265331", err: ErrSignature},
		{name: "a longer id", id: vectorID + ".1", err: ErrSignature},
		{name: "no version", signature: vectorSignature[3:], err: ErrSignature},
		{name: "another version", signature: "v2" + vectorSignature[2:], err: ErrSignature},
		{name: "no id", id: "-", err: ErrRequest},
		{name: "no time", stamp: "-", err: ErrRequest},
		{name: "no signature", signature: "-", err: ErrRequest},
		{name: "a time of another form", stamp: "2021-02-25", err: ErrRequest},
		{name: "an impossible time", stamp: "99999999999999999999", err: ErrRequest},
		{name: "a huge body", body: strings.Repeat("x", MaxBytes+1), err: ErrRequest},
		{name: "many signatures", signature: strings.Repeat("v1,AAAA ", maxSignatures) + vectorSignature,
			err: ErrSignature},
	} {
		t.Run(test.name, func(t *testing.T) {
			header, body := http.Header{}, vectorBody
			set := func(name, given, usual string) {
				switch given {
				case "-":
				case "":
					header.Set(name, usual)
				default:
					header.Set(name, given)
				}
			}
			set(HeaderID, test.id, vectorID)
			set(HeaderTimestamp, test.stamp, strconv.FormatInt(vectorTime.Unix(), 10))
			set(HeaderSignature, test.signature, vectorSignature)
			if test.body != "" {
				body = test.body
			}
			if err := r.Verify(header, []byte(body), vectorTime.Add(test.after)); !errors.Is(err, test.err) {
				t.Errorf("error is %v, expected %v", err, test.err)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	for text, valid := range map[string]bool{
		vectorKey:                               true,
		strings.TrimPrefix(vectorKey, "whsec_"): true,
		"":                                      false,
		"whsec_":                                false,
		"whsec_c2hvcnQ=":                        false,
		"whsec_!":                               false,
		"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, maxKeyBytes+1)): false,
	} {
		if _, err := ParseKey(text); (err == nil) != valid || err != nil && !errors.Is(err, ErrKey) {
			t.Errorf("%q: error is %v, expected valid: %t", text, err, valid)
		}
	}
	if _, err := NewReceiver(); !errors.Is(err, ErrKey) {
		t.Errorf("no key: error is %v", err)
	}
}

// signed returns a signed request.
func signed(t testing.TB, body, id string) *http.Request {
	t.Helper()
	key, err := ParseKey(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set(HeaderID, id)
	r.Header.Set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(HeaderSignature, key.Sign(id, now, []byte(body)))
	return r
}

func TestEvent(t *testing.T) {
	r, err := NewReceiver(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"id":"a","type":"participant_left","timestamp":"2026-11-26T23:00:00Z",` +
		`"room":{"name":"lab","id":"r"},"sequence":3,"participant":{"identity":"ada"},"reason":"left","future":1}`
	e, err := r.Event(signed(t, body, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if e.Kind != ParticipantLeft || e.Room.Name != "lab" || e.Participant.Identity != "ada" || e.Sequence != 3 ||
		e.Reason != "left" || !e.At.Equal(time.Date(2026, 11, 26, 23, 0, 0, 0, time.UTC)) {
		t.Errorf("the event is %+v", e)
	}
	for name, request := range map[string]*http.Request{
		"an id of another event": signed(t, body, "b"), "no JSON": signed(t, "{", "a"), "a list": signed(t, "[]", "a"),
	} {
		if _, err := r.Event(request); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	altered := signed(t, body, "a")
	altered.Header.Set(HeaderID, "b")
	if _, err := r.Event(altered); !errors.Is(err, ErrSignature) {
		t.Errorf("an altered id: error is %v", err)
	}
}

// FuzzVerify: only requests that the key signed for exactly this id, time and body are accepted.
func FuzzVerify(f *testing.F) {
	r, err := NewReceiver(vectorKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(vectorID, "1614265330", vectorSignature, []byte(vectorBody))
	f.Add("a.1", "1", "v1,= v1,AAAA", []byte(""))
	f.Add("", "-1", "v1, v1a,", []byte("{"))
	f.Add("a", "+1614265330", vectorSignature+" "+vectorSignature, []byte(vectorBody))
	f.Fuzz(func(t *testing.T, id, stamp, signature string, body []byte) {
		header := http.Header{HeaderID: {id}, HeaderTimestamp: {stamp}, HeaderSignature: {signature}}
		err := r.Verify(header, body, vectorTime)
		genuine := id == vectorID && stamp == "1614265330" && string(body) == vectorBody
		if err == nil && !genuine {
			// The parts of the signed text could only be divided differently if the id ended with another time.
			t.Fatalf("accepted id %q, time %q, body %q", id, stamp, body)
		}
	})
}
