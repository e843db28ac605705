package chaos

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/intruder"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// sessionGrace is the time for which a client may resume: long compared with a step, and short enough to wait for
	// after each input.
	sessionGrace = 100 * time.Millisecond
	// mostSteps is the maximum number of steps of one input, visitors the number of websockets on which they are
	// performed.
	mostSteps = 40
	visitors  = 3
	// mostGoroutines is the maximum increase in goroutines after an input: the runtime and tests have some themselves.
	// mostGrowth is the maximum growth of the heap in bytes after one input, and mostObjects the maximum number of
	// additional objects after any number of inputs.
	mostGoroutines = 4
	mostGrowth     = 1 << 20
	mostObjects    = 50_000
)

// FuzzSession lets up to three clients send joins, resumes, answers, candidates, publications and other messages to a
// server in any order, and end their websockets with and without a leave. An input is a series of steps: a byte for the
// action, a byte for the client and the variant, and as many bytes as the variant needs. The invariants:
//
//   - No goroutine of the server panics, and the server logs no error.
//   - The server replies to every client that is still connected, or has ended the websocket.
//   - Afterwards a client that was there before gets a reply, and another one joins and is connected by ICE.
//   - Once the sessions of the input have ended, the number of goroutines is as before, and the heap has about the same
//     size.
func FuzzSession(f *testing.F) {
	core, logged := observer.New(zap.ErrorLevel)
	settings := testbed.ConferenceConfig()
	settings.Signalling.MessageRate, settings.Signalling.MessageBurst = 1e6, 1e6
	settings.Rooms.ResumeGrace = sessionGrace
	c, err := testbed.NewConference(settings, nil, zap.New(core))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Close)
	url := c.Server.URL()
	witness := &visitor{url: url}
	// A client that neither receives nor publishes gets no offers, and need not answer.
	if !witness.join(&signal.Join{Version: signal.Version, Room: "room", Identity: "witness"}) {
		f.Fatal("the server admits no client")
	}
	f.Cleanup(witness.end)
	if err := behaves(url); err != nil {
		f.Fatal(err)
	}
	goroutines, before := fewestGoroutines(), objects()
	for _, seed := range sessionSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		// The fuzzing engine uses memory itself, so that each input is measured separately.
		memory := heap()
		s := &steps{t: t, input: input}
		for n := range s.visitors {
			s.visitors[n] = &visitor{url: url, name: fmt.Sprintf("visitor %d", n)}
		}
		for n := 0; len(s.input) > 0 && n < mostSteps; n++ {
			s.step()
		}
		for _, v := range s.visitors {
			v.end()
		}
		if witness.over() || !witness.answered() {
			t.Fatal("the server does not reply to an earlier client")
		}
		if err := behaves(url); err != nil {
			t.Fatalf("a client that behaves is not served: %v", err)
		}
		if all := logged.TakeAll(); len(all) > 0 {
			t.Fatalf("the server logged %q with %v", all[0].Message, all[0].ContextMap())
		}
		settle(t, goroutines+mostGoroutines)
		if grown := heap() - memory; grown > mostGrowth {
			t.Fatalf("the heap has grown by %d KiB, expected at most %d KiB", grown>>10, mostGrowth>>10)
		}
		if grown := objects() - before; grown > mostObjects {
			t.Fatalf("the heap has %d objects more, expected at most %d", grown, mostObjects)
		}
	})
}

// objects returns the number of objects in the heap after a collection.
func objects() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapObjects)
}

// fewestGoroutines returns the minimum number of goroutines within a second: those of closed connections end one by
// one.
func fewestGoroutines() int {
	fewest := runtime.NumGoroutine()
	for begun := time.Now(); time.Since(begun) < time.Second; time.Sleep(time.Millisecond) {
		fewest = min(fewest, runtime.NumGoroutine())
	}
	return fewest
}

// settle waits until at most so many goroutines run. The fuzzing engine ends an input after 10 s as hung: run
// separately as a test, the input reports the remaining goroutines.
func settle(t *testing.T, most int) {
	t.Helper()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > most; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines run, expected at most %d:\n%s",
				runtime.NumGoroutine(), most, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// behaves joins as a well-behaved client, connects, and leaves.
func behaves(url string) error {
	ctx, cancel := contextWithPatience()
	defer cancel()
	i, err := intruder.Join(ctx, intruder.Config{URL: url}, signal.Join{Receive: true, Room: "room"})
	if err != nil {
		return err
	}
	defer i.Close()
	p, err := i.Reach(ctx)
	if err != nil {
		return err
	}
	p.End()
	return nil
}

// visitor is a client that sends the messages of a test. Its goroutine reads the websocket.
type visitor struct {
	url, name string
	ws        *websocket.Conn
	ended     chan struct{}
	reading   sync.WaitGroup
	asked     int

	mu sync.Mutex
	// joined are the replies to joins, offers all offers, replies the identifiers of all replies.
	joined  []*signal.Joined
	offers  []*signal.Offer
	replies map[string]bool
}

// open opens a websocket to replace the previous one, which is closed without a leave.
func (v *visitor) open() bool {
	v.drop()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	config := intruder.Config{URL: v.url}
	ws, err := config.OpenWebsocket(ctx)
	if err != nil {
		return false
	}
	v.ws, v.ended, v.replies = ws, make(chan struct{}), make(map[string]bool)
	v.reading.Go(v.read)
	return true
}

// read is the goroutine that reads the websocket.
func (v *visitor) read() {
	defer close(v.ended)
	for {
		_, data, err := v.ws.ReadMessage()
		if err != nil {
			return
		}
		m, err := signal.DecodeFromServer(data)
		if err != nil {
			continue
		}
		v.mu.Lock()
		v.replies[m.Head().ID] = true
		switch m := m.(type) {
		case *signal.Joined:
			v.joined = append(v.joined, m)
		case *signal.Offer:
			v.offers = append(v.offers, m)
		}
		v.mu.Unlock()
	}
}

// say sends a message, on a new websocket if there is none. The server may have closed the websocket.
func (v *visitor) say(m signal.Message) {
	data, err := signal.Encode(m)
	if err != nil {
		return
	}
	v.write(websocket.TextMessage, data)
}

func (v *visitor) write(kind int, data []byte) {
	if v.over() && !v.open() {
		return
	}
	_ = v.ws.WriteMessage(kind, data)
}

// over reports whether there is no websocket, or the server has closed it.
func (v *visitor) over() bool {
	if v.ws == nil {
		return true
	}
	select {
	case <-v.ended:
		return true
	default:
		return false
	}
}

// answered requests the server's time, and reports whether a reply has arrived, or the websocket has ended. The server
// has then processed all earlier messages.
func (v *visitor) answered() bool {
	if v.over() {
		return true
	}
	v.asked++
	id := fmt.Sprintf("%s asks %d", v.name, v.asked)
	v.say(&signal.Time{Header: signal.Header{ID: id}})
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		v.mu.Lock()
		replied := v.replies[id]
		v.mu.Unlock()
		if replied || v.over() {
			return true
		}
	}
	return false
}

// join joins, and reports whether the server has admitted the visitor.
func (v *visitor) join(m *signal.Join) bool {
	v.say(m)
	return v.answered() && v.latest() != nil
}

// latest returns the latest reply to a join, or nil.
func (v *visitor) latest() *signal.Joined {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.joined) == 0 {
		return nil
	}
	return v.joined[len(v.joined)-1]
}

// offer returns the offer the given number of offers ago, or nil.
func (v *visitor) offer(back int) *signal.Offer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if back >= len(v.offers) {
		return nil
	}
	return v.offers[len(v.offers)-1-back]
}

// awaitOffer waits briefly for the first offer.
func (v *visitor) awaitOffer() {
	deadline := time.Now().Add(20 * time.Millisecond)
	for v.offer(0) == nil && !v.over() && time.Now().Before(deadline) {
		time.Sleep(100 * time.Microsecond)
	}
}

// drop closes the websocket without a leave.
func (v *visitor) drop() {
	if v.ws != nil {
		_ = v.ws.Close()
		v.reading.Wait()
		v.ws = nil
	}
}

// end leaves, and closes the websocket.
func (v *visitor) end() {
	if !v.over() {
		v.say(&signal.Leave{})
		select {
		case <-v.ended:
		case <-time.After(sessionGrace):
			// A client that has not joined cannot leave.
		}
	}
	v.drop()
}

// steps performs the steps of an input.
type steps struct {
	t        *testing.T
	input    []byte
	visitors [visitors]*visitor
}

// next reads a byte of the input, or returns 0 at the end.
func (s *steps) next() byte {
	if len(s.input) == 0 {
		return 0
	}
	b := s.input[0]
	s.input = s.input[1:]
	return b
}

// The steps.
const (
	stepJoin = iota
	stepResume
	stepAnswer
	stepCandidate
	stepPublish
	stepUnpublish
	stepLeave
	stepDrop
	stepText
	stepBurst
	stepAcknowledge
	stepBinary
	stepKinds
)

// unawaited is the bit of a step's first byte with which the step does not wait until the server has processed its
// messages.
const unawaited = 0x80

// step performs one step. The second byte selects the visitor and the variant.
func (s *steps) step() {
	kind := s.next()
	variant := s.next()
	v := s.visitors[int(variant)%visitors]
	variant /= visitors
	switch kind &^ unawaited % stepKinds {
	case stepJoin:
		v.say(s.joinOf(v, variant))
	case stepResume:
		s.resume(v, variant)
	case stepAnswer:
		s.answer(v, variant)
	case stepCandidate:
		v.say(&signal.Candidate{Candidate: s.candidate(variant), MID: fmt.Sprint(variant % 4), LineIndex: int(variant)})
	case stepPublish:
		v.say(&signal.Publish{Publication: publicationOf(int(variant))})
	case stepUnpublish:
		v.say(&signal.Unpublish{Publication: publicationOf(int(variant)).Name})
	case stepLeave:
		v.say(&signal.Leave{})
	case stepDrop:
		v.drop()
	case stepText:
		n := min(int(s.next()), len(s.input))
		v.write(websocket.TextMessage, s.input[:n])
		s.input = s.input[n:]
	case stepBurst:
		for n := range int(variant) {
			v.say(&signal.Candidate{Candidate: fmt.Sprintf("candidate:1 1 udp 1 203.0.113.%d %d typ host", n, 1000+n)})
		}
	case stepAcknowledge:
		slot := signal.SlotGeneration{MID: fmt.Sprint(variant % 8), Generation: uint32(variant / 8)}
		v.say(&signal.Acknowledge{Slots: []signal.SlotGeneration{slot}})
	case stepBinary:
		v.write(websocket.BinaryMessage, []byte{variant})
	}
	if kind&unawaited == 0 && !v.answered() {
		s.t.Fatalf("the server neither replies to %s within %v nor ends the websocket", v.name, patience)
	}
}

// joinOf returns a join. The bits of the variant select its settings; two of three visitors may have the same name.
func (s *steps) joinOf(v *visitor, variant byte) *signal.Join {
	m := &signal.Join{
		Version: signal.Version, Room: "room", Identity: v.name,
		Receive: variant&1 != 0, DataChannel: variant&2 != 0, ReceiveData: variant&4 != 0,
	}
	if variant&8 != 0 {
		m.Identity = "visitor"
	}
	for n := range map[byte]int{0: 1, 1: 0, 2: 2, 3: 9}[variant>>4&3] {
		m.Publications = append(m.Publications, publicationOf(n))
	}
	return m
}

// publicationOf returns one of several publications: of bodies in up to four tiles, or of voices.
func publicationOf(number int) volumetric.Publication {
	if number%3 == 2 {
		return volumetric.Publication{
			Name: fmt.Sprintf("voice %d", number), Kind: volumetric.KindAudio, Mode: volumetric.ModeAlternatives,
			Codec: volumetric.Codec{MIMEType: "audio/opus", ClockRate: 48_000, Channels: 2},
			Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
		}
	}
	l := testbed.Load{Name: fmt.Sprintf("body %d", number), Tiles: 1 + number%4, Qualities: 1,
		FrameBytes: 1000, Rate: 30}
	return l.Publication()
}

// resume resumes the session of one of the visitors, the latest or the previous one, with its secret or another one.
func (s *steps) resume(v *visitor, variant byte) {
	of := s.visitors[int(s.next())%visitors]
	of.mu.Lock()
	joined := slices.Clone(of.joined)
	of.mu.Unlock()
	m := s.joinOf(v, 1)
	m.Resume = &signal.ResumeRequest{Session: "none", Secret: "none", NewConnection: variant&1 != 0}
	if len(joined) > 0 {
		session := joined[max(0, len(joined)-1-int(variant>>1&1))]
		m.Identity, m.Room = session.Identity, session.Room
		m.Resume.Session, m.Resume.Secret = session.Session, session.Resume.Secret
	}
	if variant&4 != 0 {
		m.Resume.Secret += "x"
	}
	if variant&8 != 0 && !v.open() {
		return
	}
	v.say(m)
}

// answer answers one of the latest offers, correctly or almost so.
func (s *steps) answer(v *visitor, variant byte) {
	shape := s.next()
	v.awaitOffer()
	offer := v.offer(int(variant & 1))
	if offer == nil {
		offer = &signal.Offer{SDP: "v=0\r\n"}
	}
	var candidates []netip.AddrPort
	for n := range int(variant >> 1 & 7 * 10) {
		candidates = append(candidates, netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(1 + n)}), 9))
	}
	sdp := intruder.Answer(offer.SDP, candidates)
	lines := strings.SplitAfter(sdp, "\r\n")
	at := int(s.next()) % len(lines)
	switch shape % 8 {
	case 1:
		sdp = strings.Join(slices.Delete(lines, at, at+1), "")
	case 2:
		sdp = strings.Join(slices.Insert(lines, at, lines[at]), "")
	case 3:
		other := int(s.next()) % len(lines)
		lines[at], lines[other] = lines[other], lines[at]
		sdp = strings.Join(lines, "")
	case 4:
		sdp = strings.Join(lines[:at], "")
	case 5:
		sdp = offer.SDP
	case 6:
		lines[at] = strings.Map(func(r rune) rune { return r ^ rune(shape>>3&1) }, lines[at])
		sdp = strings.Join(lines, "")
	}
	v.say(&signal.Answer{Offer: offer.Offer + int(int8(s.next()&0xc0))/64, SDP: sdp})
}

// candidate returns the text of a candidate; some are valid.
func (s *steps) candidate(variant byte) string {
	texts := []string{
		"candidate:1 1 udp 2130706431 203.0.113.9 9 typ host",
		"candidate:1 1 udp 2130706431 2001:db8::9 9 typ host",
		"candidate:1 1 tcp 1 203.0.113.9 9 typ host tcptype active", "candidate:1 1 udp 1 4c1f8a3e.local 9 typ host",
		"candidate:1 1 udp 1 127.0.0.1 9 typ host", "", "candidate:", "garbage",
		"candidate:1 1 udp 1 203.0.113.9 65536 typ host",
		"candidate:1 1 udp 1 203.0.113.9 9 typ srflx raddr 10.0.0.1 rport 9",
	}
	text := texts[int(variant)%len(texts)]
	if variant >= 64 {
		n := min(int(s.next()), len(s.input))
		text += string(s.input[:n])
		s.input = s.input[n:]
	}
	return text
}

// sessionSeeds are inputs of well-formed sequences. The second byte of a step is the visitor plus visitors times the
// variant.
func sessionSeeds() [][]byte {
	by := func(n, variant int) byte { return byte(n + visitors*variant) }
	const receive, named, body = 1, 8, 0
	return [][]byte{
		{stepJoin, by(0, receive|body), stepAnswer, by(0, 0), 0, 0, 0, stepCandidate, by(0, 0), stepLeave, by(0, 0)},
		// A publisher and a receiver; the receiver's session is resumed over another websocket.
		{
			stepJoin, by(0, body), stepAnswer, by(0, 0), 0, 0, 0, stepJoin, by(1, receive|1<<4),
			stepAnswer, by(1, 0), 0, 0, 0,
			stepDrop, by(1, 0), stepResume, by(1, 1), 1, stepAnswer, by(1, 0), 0, 0, 0, stepLeave, by(1, 0),
		},
		// A session that is taken over while its websocket is open, twice, and answers to old offers.
		{
			stepJoin, by(0, receive), stepResume, by(1, 8), 0, stepResume, by(2, 9), 1, stepAnswer, by(2, 1), 0, 0, 0,
			stepAnswer, by(2, 0), 0, 0, 64, stepAnswer, by(2, 0), 0, 0, 128,
		},
		// The same name twice, a wrong secret, a session that has ended.
		{
			stepJoin, by(0, named), stepJoin, by(1, named), stepResume, by(2, 4), 0, stepLeave, by(0, 0),
			stepResume, by(1, 0), 0,
			stepJoin, by(1, named|receive),
		},
		// Publications are added and removed while an offer is unanswered.
		{
			stepJoin, by(0, 1<<4), stepJoin, by(1, receive), stepPublish, by(0, 1), stepPublish, by(0, 2),
			stepUnpublish, by(0, 1),
			stepAnswer, by(0, 1), 0, 0, 0, stepAnswer, by(0, 0), 0, 0, 0, stepUnpublish, by(0, 2), stepDrop, by(0, 0),
		},
		// Wrong answers, then a correct one.
		{
			stepJoin, by(0, receive), stepAnswer, by(0, 0), 1, 5, 0, stepAnswer, by(0, 0), 4, 9, 0,
			stepAnswer, by(0, 0), 3, 4, 9, 0,
			stepAnswer, by(0, 0), 5, 0, 0, stepAnswer, by(0, 14), 0, 0, 0,
		},
		// Candidates without a description, too many candidates, and invalid texts.
		{
			stepJoin, by(0, receive), stepBurst, by(0, 80), stepCandidate, by(0, 7),
			stepCandidate, by(0, 70), 3, 'a', 0xff, 'b',
			stepAnswer, by(0, 0), 0, 0, 0, stepBurst, by(0, 80),
		},
		// Messages before a join, binary ones, and invalid text.
		{
			stepAnswer, by(0, 0), 0, 0, 0, stepCandidate, by(0, 0), stepLeave, by(0, 0), stepBinary, by(0, 1),
			stepText, by(1, 0), 2, '{', '}',
			stepJoin, by(1, receive), stepText, by(1, 0), 4, 'n', 'u', 'l', 'l', stepJoin, by(2, 3<<4),
		},
		// A burst of all steps that do not wait.
		{
			stepJoin | unawaited, by(0, receive), stepResume | unawaited, by(0, 9), 0,
			stepAnswer | unawaited, by(0, 0), 0, 0, 0,
			stepPublish | unawaited, by(0, 1), stepUnpublish | unawaited, by(0, 1),
			stepAcknowledge | unawaited, by(0, 1),
			stepLeave | unawaited, by(0, 0), stepJoin | unawaited, by(0, receive), stepDrop | unawaited, by(0, 0),
		},
	}
}
