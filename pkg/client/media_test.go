package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestServersClock(t *testing.T) {
	m := newRig(t, Config{})
	now := time.Now()
	if got := m.serverTime(now); !got.Equal(now) {
		t.Errorf("before the first reply the server's time is %v, want this host's %v", got, now)
	}
	// A slow round trip, in which only the request was slow, and a quick one.
	slow := now.Add(time.Second)
	m.clockReply(&signal.TimeReply{
		T0: now.UnixMicro(), T1: now.Add(time.Minute + 300*time.Millisecond).UnixMicro(),
		T2: now.Add(time.Minute + 300*time.Millisecond).UnixMicro(),
	}, now.Add(300*time.Millisecond))
	if got := m.serverTime(slow).Sub(slow); (got - time.Minute - 150*time.Millisecond).Abs() > time.Millisecond {
		t.Errorf("the server is ahead by %v, want 1m0.15s", got)
	}
	m.clockReply(&signal.TimeReply{T0: now.UnixMicro(), T1: now.Add(time.Minute).UnixMicro(),
		T2: now.Add(time.Minute).UnixMicro()}, now.Add(time.Millisecond))
	if got := m.serverTime(slow).Sub(slow); (got - time.Minute).Abs() > 2*time.Millisecond {
		t.Errorf("the server is ahead by %v, want 1m0s by the quicker round trip", got)
	}
	// Times that contradict each other change nothing.
	m.clockReply(&signal.TimeReply{T0: now.UnixMicro(), T1: now.Add(time.Hour).UnixMicro(), T2: now.UnixMicro()},
		now.Add(time.Microsecond))
	m.clockReply(&signal.TimeReply{T0: now.Add(time.Hour).UnixMicro()}, now)
	if got := m.serverTime(slow).Sub(slow); (got - time.Minute).Abs() > 2*time.Millisecond {
		t.Errorf("after nonsense the server is ahead by %v, want 1m0s", got)
	}
}

func TestNothingComesAfterTheEnd(t *testing.T) {
	m := newRig(t, Config{})
	m.peer.Store(newPeer(t, m))
	p, _ := published(t, m, described("film", volumetric.MIMEH264, 1, 1))
	if _, err := p.WritePackets(0, 0, time.Now(), [][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	m.end()
	close(m.session.events)
	// Packets that arrive late find closed channels.
	in.send(1, 0, epoch)
	request, err := (&rtcp.PictureLossIndication{MediaSSRC: 100}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	m.RTCP(request, epoch)
	if _, err := p.WritePackets(0, 0, time.Now(), [][]byte{{1}}); !errors.Is(err, ErrNotConnected) {
		t.Errorf("got %v, want an error around %v", err, ErrNotConnected)
	}
	if _, open := <-m.frames; open {
		t.Error("a frame came after the end")
	}
}

func TestANewConnectionBeginsAnew(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	former := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "grace", 0, &body)
	former.send(1, 0, epoch)
	m.reset()
	if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 1, Capture: time.Now()}); !errors.Is(err, ErrNotConnected) {
		t.Errorf("got %v, want an error around %v", err, ErrNotConnected)
	}
	former.send(2, 0, epoch)
	if frames := taken(m); len(frames) != 1 {
		t.Errorf("%d frames, want only the one of before", len(frames))
	}
	// Mids and generations count from the beginning.
	in := newIncoming(t, m, "4", volumetric.KindVideo, 21)
	assign(t, m, "4", 1, "grace", 0, &body)
	in.send(3, 0, epoch)
	if frames := taken(m); len(frames) != 1 || frames[0].Number != 3 {
		t.Errorf("got %v, want frame 3", frames)
	}
	w := newOutlet(volumetric.MIMEVolumetric, 200, 201)
	m.agree(agreement{extension: 1})
	m.connect()
	p.attach(m.media, "0", w, 0, 0)
	if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 2, Capture: time.Now()}); err != nil {
		t.Fatal(err)
	}
	flush(m, time.Now().Add(time.Second))
	if len(w.sent) != 1 || w.sent[0].SSRC != 200 {
		t.Errorf("sent %v, want one packet on the new line", w.sent)
	}
}

// TestCountsOutliveAConnection replaces the connection after a request for a missing packet.
func TestCountsOutliveAConnection(t *testing.T) {
	m := newRig(t, Config{})
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	assignNext := func(ssrc uint32) *incoming {
		in := newIncoming(t, m, "4", volumetric.KindVideo, ssrc)
		assign(t, m, "4", 1, "grace", 0, &body)
		return in
	}
	in := assignNext(1)
	in.send(1, 0, epoch)
	in.send(2, 0, epoch.Add(interval), 1)
	if requested := asked(m, epoch.Add(2*interval)); len(requested) != 1 {
		t.Fatalf("asked for %v, expected one packet", requested)
	}
	before := statsOf(t, m, "grace", 0)
	if before.Requests == 0 {
		t.Fatalf("counts %+v, expected a request", before)
	}
	m.reset()
	if after := statsOf(t, m, "grace", 0); after != before {
		t.Errorf("counts %+v after the end of the connection, expected %+v", after, before)
	}
	assignNext(11)
	if after := statsOf(t, m, "grace", 0); after != before {
		t.Errorf("counts %+v on the next connection, expected %+v", after, before)
	}
}

// silent is a server that accepts a websocket and every message, and never answers. heard has a value once a message
// has arrived.
func silent(t *testing.T) (url string, heard <-chan struct{}) {
	t.Helper()
	came := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
			select {
			case came <- struct{}{}:
			default:
			}
		}
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http"), came
}

func TestRequestsEndWithTheirWebsocket(t *testing.T) {
	m := newRig(t, Config{})
	s := m.session
	url, heard := silent(t)
	conn := m.dial(t, url)
	defer conn.Close()
	failed := make(chan error, 1)
	go func() { failed <- s.SetQuality(context.Background()) }()
	select {
	case <-heard:
	case <-time.After(longEnough):
		t.Fatal("the request was not made")
	}
	s.requests.Continue(conn)
	if err := <-failed; !errors.Is(err, ErrInterrupted) {
		t.Errorf("got %v, want an error around %v", err, ErrInterrupted)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Publish(ctx, described("body", volumetric.MIMEVolumetric, 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an error around %v", err, context.Canceled)
	}
	if s.Publisher("body") != nil {
		t.Error("a publication that the server has not taken is kept")
	}
}

func TestRefusedTokens(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	config := Config{URL: "ws" + strings.TrimPrefix(server.URL, "http"), Room: "lab", Identity: "ada", Token: "secret"}
	_, err := Join(context.Background(), config)
	var refused *signal.Error
	if !errors.As(err, &refused) || refused.Code != signal.CodeUnauthorized {
		t.Errorf("got %v, want an error with code %s", err, signal.CodeUnauthorized)
	}
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error %v tells the token", err)
	}
	config.Token = "other"
	if _, err := Join(context.Background(), config); err == nil || errors.As(err, &refused) {
		t.Errorf("got %v, want an error that is not the server's refusal", err)
	}
}
