package client

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// listener is a server that accepts a websocket, passes on every message, and replies to requests.
func listener(t *testing.T) (string, <-chan signal.Message) {
	t.Helper()
	heard := make(chan signal.Message, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for {
			_, data, err := conn.ReadMessage()
			if err != nil {
				return
			}
			m, err := signal.DecodeFromClient(data)
			if err != nil {
				t.Errorf("%s: %v", data, err)
				return
			}
			if err := m.(signal.Request).Validate(); err != nil {
				t.Errorf("%s: %v", data, err)
			}
			if m.Head().Type == signal.TypeTime {
				continue // the clock is requested periodically
			}
			heard <- m
			if id := m.Head().ID; id != "" {
				reply, err := signal.Encode(&signal.OK{Header: signal.Header{ID: id}})
				if err != nil || conn.WriteMessage(websocket.TextMessage, reply) != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http"), heard
}

// converse connects the session of a rig to a listener until the test ends.
func converse(t *testing.T, m *rig) <-chan signal.Message {
	t.Helper()
	s := m.session
	url, heard := listener(t)
	m.dial(t, url)
	m.peer.Store(newPeer(t, m))
	var err error
	if s.endpoint, err = s.config.endpoint(); err != nil {
		t.Fatal(err)
	}
	s.lifetime.Go(newControl(s.parts).run)
	t.Cleanup(func() {
		s.lifetime.End(ErrClosed)
		s.lifetime.Wait()
	})
	return heard
}

func TestViewpointsPosesAndLimitsReachTheServer(t *testing.T) {
	m := newRig(t, Config{})
	s := m.session
	heard := converse(t, m)
	at := time.Now()
	s.SetViewpoint(Viewpoint{At: at, Position: [3]float64{1, 1.6, 2}, Orientation: [4]float64{0, 0.6, 0, 0.8},
		FOV: math.Pi / 2, Aspect: 1.5})
	got := (<-heard).(*signal.Viewpoint)
	if got.At != at.UnixMicro() || got.Position != (signal.Vector{1, 1.6, 2}) ||
		got.Orientation != (signal.Rotation{0, 0.6, 0, 0.8}) || math.Abs(got.FOV-90) > 1e-9 || got.Aspect != 1.5 {
		t.Errorf("got %+v", got)
	}
	s.SetViewpoint(Viewpoint{})
	if got = (<-heard).(*signal.Viewpoint); math.Abs(got.FOV-60) > 1e-9 || got.Aspect != 1 ||
		got.Orientation != (signal.Rotation{0, 0, 0, 1}) || got.At < at.UnixMicro() {
		t.Errorf("got %+v, want the defaults", got)
	}
	p := newPublisher(s.publishers, described("body", volumetric.MIMEVolumetric, 1, 1))
	p.SetPose(Pose{Position: [3]float64{1, 0, -1}, Priority: 2, Boxes: make([]volumetric.BoundingBox, 1)})
	if got := (<-heard).(*signal.Pose); got.Publication != "body" || got.Position != (signal.Vector{1, 0, -1}) ||
		got.Orientation != (signal.Rotation{0, 0, 0, 1}) || got.Priority != 2 || len(got.Boxes) != 1 {
		t.Errorf("got %+v", got)
	}
	if err := s.SetLimits(context.Background(), 20e6, 1e6); err != nil {
		t.Error(err)
	}
	if got := (<-heard).(*signal.SetLimits); got.BitrateLimits != (signal.BitrateLimits{Max: 20e6, Min: 1e6}) ||
		s.requested.Limits() != got.BitrateLimits {
		t.Errorf("got %+v, kept %+v", got, s.requested.Limits())
	}
}

func TestWhatTheServerSaysBecomesEvents(t *testing.T) {
	s := newRig(t, Config{}).session
	newControl(s.parts).handle(&signal.Bandwidth{Estimate: 3, Allocated: 2, Wanted: 1, L4S: "marked"})
	newControl(s.parts).handle(&signal.Pose{Participant: "ada", Publication: "body",
		Position: signal.Vector{1, 2, 3}, Orientation: signal.Rotation{0, 1, 0, 0}})
	for _, want := range []Event{
		Bandwidth{Estimate: 3, Allocated: 2, Wanted: 1, L4S: "marked"},
		PoseChanged{
			Publication: volumetric.PublicationRef{Participant: "ada", Publication: "body"},
			Pose: Pose{Position: [3]float64{1, 2, 3}, Orientation: [4]float64{0, 1, 0, 0}, Scale: 1,
				Priority: 1},
		},
	} {
		if got := <-s.events; !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
