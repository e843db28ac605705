package rendezvous

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/pkg/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func producer() Hello {
	return Hello{Role: RoleProducer, SSRC: 7, Transport: TransportUDP, Mode: ModeAdaptive, Port: 5000, Codec: "raw1",
		FrameRate: 30}
}

// meet connects a listener and a dialler.
func meet(t *testing.T) (listening, dialling *Conn) {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	accepted := make(chan *Conn, 1)
	go func() {
		c, err := l.Accept(t.Context())
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	if dialling, err = Dial(t.Context(), l.Address()); err != nil {
		t.Fatal(err)
	}
	listening = <-accepted
	t.Cleanup(dialling.Close)
	t.Cleanup(listening.Close)
	if _, err := Dial(t.Context(), "ws://"+l.Address()); !errors.Is(err, ErrBusy) {
		t.Errorf("a second connection: got %v", err)
	}
	return listening, dialling
}

// TestClosedListener: requests that are read after the listener was closed are refused, and Close does not wait for
// them.
func TestClosedListener(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	answer := httptest.NewRecorder()
	l.upgrade(answer, httptest.NewRequest(http.MethodGet, path, nil))
	if answer.Code != http.StatusServiceUnavailable || len(l.taken) != 0 {
		t.Errorf("got status %d, and %d that were taken", answer.Code, len(l.taken))
	}
}

func TestMeeting(t *testing.T) {
	listening, dialling := meet(t)
	greeted := make(chan error, 1)
	go func() {
		_, err := listening.Greet(t.Context(), producer())
		greeted <- err
	}()
	hello, err := dialling.Greet(t.Context(), Hello{Role: RoleConsumer, SSRC: 9})
	if err != nil || hello.Port != 5000 || hello.Codec != "raw1" {
		t.Fatalf("got %+v, %v", hello, err)
	}
	if err := <-greeted; err != nil {
		t.Fatal(err)
	}
	if !listening.Remote().IsLoopback() || !dialling.Remote().IsLoopback() {
		t.Errorf("the sides are at %v and %v", listening.Remote(), dialling.Remote())
	}
	record := Received{Number: 12, Received: stages.Received{Decoded: 5}}
	for _, m := range []Message{
		{Type: TypeOffer, SDP: "v=0"}, {Type: TypeCandidate, Candidate: &Candidate{Candidate: "candidate:1"}},
		{Type: TypeTime, Time: &Time{Asked: 1}},
		{Type: TypeViewpoint, Viewpoint: &signal.Viewpoint{Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 60,
			Aspect: 1}},
		{Type: TypeSent, Sent: []stages.Sent{{Frame: 12, Hash: 1 << 63}}},
		{Type: TypeReceived, Received: []Received{record}},
	} {
		if err := dialling.Send(m); err != nil {
			t.Fatal(err)
		}
		got, err := listening.Next(t.Context(), m.Type)
		if err != nil {
			t.Fatal(err)
		}
		if m.Type == TypeReceived {
			if r := got.Received[0]; r.Frame != 12 || r.Decoded != 5 {
				t.Errorf("got %+v", r)
			}
			continue
		}
		want, _ := json.Marshal(m)
		if data, _ := json.Marshal(got); string(data) != string(want) {
			t.Errorf("got %s, expected %s", data, want)
		}
	}
	if err := dialling.Send(Message{Type: TypeTime, Time: &Time{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := listening.Next(t.Context(), TypeAnswer); !errors.Is(err, ErrMessage) {
		t.Errorf("expected an error for the wrong type, got %v", err)
	}
	dialling.Close()
	if _, err := listening.Next(t.Context(), TypeAnswer); !errors.Is(err, ErrEnded) {
		t.Errorf("got %v", err)
	}
}

func TestTwoProducers(t *testing.T) {
	listening, dialling := meet(t)
	greeted := make(chan error, 1)
	go func() {
		_, err := listening.Greet(t.Context(), producer())
		greeted <- err
	}()
	if _, err := dialling.Greet(t.Context(), producer()); !errors.Is(err, ErrRole) {
		t.Errorf("got %v", err)
	}
	if err := <-greeted; !errors.Is(err, ErrRole) {
		t.Errorf("got %v", err)
	}
}

// TestMalformed: a malformed message ends the rendezvous.
func TestMalformed(t *testing.T) {
	listening, dialling := meet(t)
	if err := dialling.Send(Message{Type: "gossip"}); err != nil {
		t.Fatal(err)
	}
	if _, err := listening.Next(t.Context(), TypeHello); !errors.Is(err, ErrMessage) {
		t.Errorf("got %v", err)
	}
}

func TestNoListener(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := Listen(l.Address()); err == nil {
		t.Error("expected an error for an address in use")
	}
	l.Close()
	if _, err := Dial(t.Context(), l.Address()); err == nil {
		t.Error("expected an error without a listener")
	}
	if _, err := Dial(t.Context(), "ws://\x01"); err == nil {
		t.Error("expected an error for an invalid address")
	}
}

func TestChecks(t *testing.T) {
	hello := func(change func(*Hello)) string {
		h := producer()
		h.Version = Version
		change(&h)
		data, err := json.Marshal(Message{Type: TypeHello, Hello: &h})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	tests := []struct{ text, want string }{
		{"{", "malformed message"},
		{`{"type":"dance"}`, "unknown type"},
		{`{"type":"hello"}`, "is missing"},
		{`{"type":"offer"}`, "is missing"},
		{`{"type":"viewpoint"}`, "is missing"},
		{`{"type":"viewpoint","viewpoint":{"position":[0,0,0],"orientation":[1,1,1,1],"fov":60,"aspect":1}}`,
			"orientation"},
		{hello(func(h *Hello) { h.Version = 2 }), "version is 2, expected 1"},
		{hello(func(h *Hello) { h.Role = "critic" }), "role is"},
		{hello(func(h *Hello) { h.Transport = "pigeon" }), "transport is"},
		{hello(func(h *Hello) { h.Mode = "hasty" }), "mode is"},
		{hello(func(h *Hello) { h.Port = 0 }), "no port"},
		{hello(func(h *Hello) { h.Codec = "draco" }), "codec is"},
		{hello(func(h *Hello) { h.FrameRate = -1 }), "frame rate is -1"},
		{hello(func(h *Hello) { h.Box.Min[1] = 5 }), "box is"},
		{hello(func(*Hello) {}), ""},
	}
	for _, test := range tests {
		_, err := Parse([]byte(test.text))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.text, err)
		case test.want != "" && (!errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: expected an error with %q, got %v", test.text, test.want, err)
		}
	}
}

// FuzzParse: any input is an error or a message that can be encoded again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"hello","hello":{"version":1,"role":"producer","transport":"udp","mode":"paper002",` +
		`"port":1,"codec":"drco","frame_rate":30}}`))
	f.Add([]byte(`{"type":"received","received":[{"frame":3,"decoded_us":5,"received_hash":"77"}]}`))
	f.Add([]byte(`{"type":"viewpoint","viewpoint":{"position":[0,0,0],"orientation":[0,0,0,1],"fov":60,"aspect":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("%s cannot be encoded again: %v", data, err)
		}
		if _, err := Parse(again); err != nil {
			t.Fatalf("%s was encoded as %s: %v", data, again, err)
		}
	})
}
