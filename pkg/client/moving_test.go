package client_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// proxy stands between a client and a server, and changes their messages. A function that returns nil drops a message.
type proxy struct {
	address            string
	toServer, toClient func(message map[string]any) map[string]any

	mu     sync.Mutex
	client *websocket.Conn
	// closed is closed when the client has closed its websocket.
	closed chan struct{}
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	same := func(message map[string]any) map[string]any { return message }
	p := &proxy{toServer: same, toClient: same, closed: make(chan struct{})}
	var once sync.Once
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		near, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = near.Close() }()
		far, _, err := websocket.DefaultDialer.Dial(server+r.URL.Path, nil)
		if err != nil {
			return
		}
		defer func() { _ = far.Close() }()
		p.mu.Lock()
		p.client = near
		p.mu.Unlock()
		go func() {
			p.pass(far, near, p.toClient)
			_ = near.Close()
		}()
		p.pass(near, far, p.toServer)
		once.Do(func() { close(p.closed) })
	}))
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	p.address = "ws" + strings.TrimPrefix(listener.URL, "http")
	return p
}

// pass passes on messages until the websocket ends.
func (p *proxy) pass(from, to *websocket.Conn, change func(map[string]any) map[string]any) {
	for {
		_, data, err := from.ReadMessage()
		if err != nil {
			return
		}
		var message map[string]any
		if json.Unmarshal(data, &message) != nil {
			return
		}
		if message = change(message); message == nil {
			continue
		}
		p.write(to, message)
	}
}

// say sends a message to the client.
func (p *proxy) say(message map[string]any) {
	p.mu.Lock()
	to := p.client
	p.mu.Unlock()
	p.write(to, message)
}

func (p *proxy) write(to *websocket.Conn, message map[string]any) {
	data, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = to.WriteMessage(websocket.TextMessage, data)
}

// thin is a publication of one tile at one quality.
func thin() volumetric.Publication {
	p := body()
	p.Tiles, p.Qualities = p.Tiles[:1], p.Qualities[:1]
	return p
}

// deadline is that of repairs.
const deadline = 2 * time.Second

// enter joins a room. The session ends with the test.
func enter(t *testing.T, config client.Config) *client.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	config.Room, config.Deadline, config.QueueBudget = "moving", deadline, 10*time.Second
	s, err := client.Join(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// record is a thread-safe list of the frames of a session by number, and of its events of interest.
type record struct {
	mu      sync.Mutex
	numbers []int64
	moved   bool
	other   []client.Event
}

func (r *record) read(s *client.Session) {
	for frames, events := s.Frames(), s.Events(); frames != nil && events != nil; {
		select {
		case f, open := <-frames:
			if !open {
				frames = nil
				continue
			}
			r.mu.Lock()
			r.numbers = append(r.numbers, f.Number)
			r.mu.Unlock()
		case e, open := <-events:
			if !open {
				events = nil
				continue
			}
			r.mu.Lock()
			switch e.(type) {
			case client.Moved:
				r.moved = true
			case client.Interrupted, client.Resumed, client.ParticipantLeft, client.Closing:
				r.other = append(r.other, e)
			}
			r.mu.Unlock()
		}
	}
}

func (r *record) list() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.numbers)
}

// gaps returns the number of frames between the first and the last one that have not arrived, and that of arrivals of
// frames that had arrived before.
func (r *record) gaps() (missing, repeated int) {
	numbers := r.list()
	slices.Sort(numbers)
	distinct := slices.Compact(slices.Clone(numbers))
	return int(distinct[len(distinct)-1]-distinct[0]) + 1 - len(distinct), len(numbers) - len(distinct)
}

func (r *record) hasMoved() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moved
}

// TestMakeBeforeBreak moves ada between two servers that know nothing of each other. Proxies change the messages so
// that the second accepts her as a resumed session. bob is on both servers with the same frames. Each server has a
// watcher.
func TestMakeBeforeBreak(t *testing.T) {
	t.Parallel()
	stalls := wait.WatchStalls(t)
	settings := testbed.ConferenceConfig()
	testbed.Unhurried(&settings)
	second, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Close)
	before, after := newProxy(t, serverURL()), newProxy(t, second.Server.URL())
	resumed := make(chan map[string]any, 1)
	after.toServer = func(m map[string]any) map[string]any {
		if m["type"] == "join" {
			resumed <- m["resume"].(map[string]any)
			delete(m, "resume")
			m["publications"] = []volumetric.Publication{thin()}
		}
		return m
	}
	after.toClient = func(m map[string]any) map[string]any {
		if m["type"] == "joined" {
			m["resumed"] = true
		}
		return m
	}
	publishing := []volumetric.Publication{thin()}
	ada := enter(t, client.Config{URL: before.address, Identity: "ada", Receive: true, Publications: publishing})
	bobs := []*client.Session{
		enter(t, client.Config{URL: serverURL(), Identity: "bob", Publications: publishing}),
		enter(t, client.Config{URL: second.Server.URL(), Identity: "bob", Publications: publishing}),
	}
	watchers := []*client.Session{
		enter(t, client.Config{URL: serverURL(), Identity: "watcher", Receive: true}),
		enter(t, client.Config{URL: second.Server.URL(), Identity: "watcher", Receive: true}),
	}
	var received record
	go received.read(ada)
	seen := make([]struct {
		sync.Mutex
		ada []int64
		bob bool
	}, 2)
	for i, w := range watchers {
		go func() {
			for f := range w.Frames() {
				seen[i].Lock()
				if f.Track.Participant == "ada" {
					seen[i].ada = append(seen[i].ada, f.Number)
				} else {
					seen[i].bob = true
				}
				seen[i].Unlock()
			}
		}()
	}
	ofAda := func(server int) []int64 {
		seen[server].Lock()
		defer seen[server].Unlock()
		return slices.Clone(seen[server].ada)
	}
	refusals := make(chan error, 1)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	data := someTile(0)
	writing.Go(func() {
		ticker := time.NewTicker(time.Second / 30)
		defer ticker.Stop()
		began := false
		for number := uint32(1); ; number++ {
			select {
			case now := <-ticker.C:
				frame := client.OutgoingFrame{Number: number, Capture: now, Data: data}
				for _, b := range bobs {
					_, _ = b.Publisher("body").WriteFrame(0, 0, frame)
				}
				_, err := ada.Publisher("body").WriteFrame(0, 0, frame)
				if began = began || err == nil; began && err != nil {
					select {
					case refusals <- err:
					default:
					}
				}
			case <-stop:
				return
			}
		}
	})
	end := sync.OnceFunc(func() {
		close(stop)
		writing.Wait()
	})
	defer end()
	wait.Until(t, "frames of bob and ada arrive", func() bool {
		seen[1].Lock()
		bob := seen[1].bob
		seen[1].Unlock()
		return len(received.list()) > 10 && len(ofAda(0)) > 10 && bob
	})
	before.say(map[string]any{
		"type": "moved", "url": after.address, "ticket": "ticket", "deadline_ms": 60000, "make_before_break": true,
	})
	wait.Until(t, "ada has moved", received.hasMoved)
	if r := <-resumed; r["secret"] != "ticket" || r["new_connection"] != true {
		t.Errorf("resumed with %v", r)
	}
	<-before.closed
	there := len(ofAda(1))
	here := len(received.list())
	wait.Until(t, "frames go on", func() bool { return len(ofAda(1)) > there+10 && len(received.list()) > here+10 })
	end()
	select {
	case err := <-refusals:
		if stalls.Longest() < 100*time.Millisecond {
			t.Errorf("a frame was refused: %v", err)
		}
	default:
	}
	// Lost packets are repaired within the deadline, and their frames arrive after later ones.
	var missing, repeated int
	wait.For(2*deadline, func() bool {
		missing, repeated = received.gaps()
		return missing == 0
	})
	received.mu.Lock()
	defer received.mu.Unlock()
	if len(received.other) > 0 {
		t.Errorf("the program saw %#v", received.other)
	}
	if (missing > 0 || repeated > 0) && stalls.Longest() < 100*time.Millisecond {
		t.Errorf("%d frames of bob are missing, %d came twice: %v", missing, repeated, received.numbers)
	}
	first, last := slices.Max(ofAda(0)), slices.Min(ofAda(1))
	if first >= last {
		t.Errorf("the first server has frames up to %d, the second has frame %d", first, last)
	}
	t.Logf("frames to the first server until %d, to the second from %d", first, last)
}
