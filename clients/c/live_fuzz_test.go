//go:build cgo

package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// maxCalls bounds the calls of one program, maxJoins the sessions that it opens.
	maxCalls, maxJoins = 16, 2
	// places is the number of sessions, and of publishers, that two programs share. The first session is the resident
	// receiver.
	places = 3
	// residentInterval is the interval of the frames that the resident publisher writes.
	residentInterval = 2 * time.Millisecond
	// callPatience is the time limit of the programs' sessions for answers of the server. residentPatience is that of
	// the resident sessions, which must open, and the time limit for the first frame.
	callPatience, residentPatience = 2 * time.Second, time.Minute
)

// The statuses of volsfu.h.
const (
	statusOK, statusWanted          = 0, 1
	firstMistake, lastMistake       = -1, -14
	firstImpossible, lastImpossible = -20, -27
	firstRefusal, lastRefusal       = -100, -125
	statusHandle, statusArgument    = -3, -4
	statusBuffer, statusCodec       = -9, -12
	statusMalformed                 = -13
)

// The calls of a program. A byte of the program selects one.
const (
	callConnect = iota
	callClose
	callSetLimits
	callSetViewpoint
	callServerTime
	callGetRoom
	callNextFrame
	callReleaseFrame
	callSetQuality
	callPublish
	callUnpublish
	callWriteFrame
	callWanted
	callSetPose
	callNextEvent
	callReleaseEvent
	callGetTotals
	callGetStatistics
	callSetAttributes
	callPublishSound
	callWriteSound
	callListen
	callReadSound
	callEndListening
	callSendMessage
	callNextMessage
	callReleaseMessage
	calls
)

// live is a server with a publisher, whose frames a receiver gets. The programs call the receiver's session, too. If it
// has ended, the next run opens another.
type live struct {
	url                       string
	sender, receiver, written uint64
	stop                      chan struct{}
	writing                   sync.WaitGroup
	joins                     atomic.Uint32
}

// openLive starts a server and the resident publisher, which end with the test.
func openLive(f *testing.F) *live {
	conference, err := testbed.NewConference(testbed.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(conference.Close)
	l := &live{url: conference.Server.URL(), stop: make(chan struct{})}
	l.sender = l.enter(f)
	publication, publisher := structFor(readPublication), third(volsfu_publish)
	set(&publication.size, uint64(unsafe.Sizeof(*publication)))
	put(&publication.name, []byte("desk"))
	tiles, qualities := arrayOf(publication.tiles, 1), arrayOf(publication.qualities, 1)
	publication.tiles, publication.qualities = &tiles[0], &qualities[0]
	set(&publication.tile_count, uint64(1))
	set(&publication.quality_count, uint64(1))
	if status := callPair(volsfu_publish, l.sender, publication, publisher); status != statusOK {
		f.Fatalf("publish: status %d", status)
	}
	l.written = uint64(*publisher)
	l.writing.Go(l.write)
	f.Cleanup(func() {
		close(l.stop)
		l.writing.Wait()
		call1(volsfu_close, l.receiver)
		call1(volsfu_close, l.sender)
	})
	return l
}

// enter opens a session of a new participant.
func (l *live) enter(t testing.TB) uint64 {
	t.Helper()
	config, session := structFor(readConfig), second(volsfu_connect)
	set(&config.size, uint64(unsafe.Sizeof(*config)))
	set(&config.flags, uint64(1))
	set(&config.request_ms, residentPatience.Milliseconds())
	put(&config.url, []byte(l.url))
	put(&config.room, []byte("fuzz"))
	put(&config.identity, fmt.Appendf(nil, "resident %d", l.joins.Add(1)))
	if status := int32(volsfu_connect(config, session)); status != statusOK {
		t.Fatalf("connect: status %d", status)
	}
	return uint64(*session)
}

// receive opens another session for the receiver, and waits for a frame of the publisher.
func (l *live) receive(t testing.TB) {
	t.Helper()
	call1(volsfu_close, l.receiver)
	l.receiver = l.enter(t)
	frame := structOf(volsfu_release_frame)
	set(&frame.size, uint64(unsafe.Sizeof(*frame)))
	if status := callTimed(volsfu_next_frame, l.receiver, residentPatience.Milliseconds(), frame); status != statusOK {
		t.Fatalf("the first frame: status %d", status)
	}
	if status := int32(volsfu_release_frame(frame)); status != statusOK {
		t.Fatalf("release the first frame: status %d", status)
	}
}

// write writes frames until the end of the test.
func (l *live) write() {
	ticker := time.NewTicker(residentInterval)
	defer ticker.Stop()
	data := bytes.Repeat([]byte("points"), 50)
	for number := uint64(1); ; number++ {
		select {
		case <-ticker.C:
		case <-l.stop:
			return
		}
		frame := fourth(volsfu_write_frame)
		set(&frame.size, uint64(unsafe.Sizeof(*frame)))
		set(&frame.number, number)
		frame.data = unsafe.Pointer(&data[0])
		set(&frame.length, uint64(len(data)))
		callTrack(volsfu_write_frame, l.written, 0, 0, frame)
	}
}

// joined reports whether a session is in its room.
func joined(session uint64) bool {
	return callText(volsfu_get_room, session, nil, 0, fourth(volsfu_get_room)) == statusBuffer
}

// FuzzLiveSession runs two programs of calls at the same time, which share their sessions and publishers, while frames
// arrive. At the end of the first program its sessions are closed, at any point of the second program. Every call must
// return a status that volsfu.h documents, and a failed call must not change its output.
func FuzzLiveSession(f *testing.F) {
	l := openLive(f)
	for call := range byte(calls) {
		// The call with valid arguments, on the resident session and on another that is closed at the same time.
		f.Add([]byte{callConnect, 0, call, 0, call, 1, callClose, 1}, []byte{callPublish, 1, call, 1, call, 0})
		// The call with handles of other objects and with extreme arguments.
		f.Add([]byte{call, 3, 255, 255, 255, 255}, bytes.Repeat([]byte{call, 6, 11}, maxCalls))
		f.Add(bytes.Repeat([]byte{callConnect, 0, callClose, 1}, maxJoins), bytes.Repeat([]byte{call, 1}, maxCalls))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if !joined(l.receiver) {
			l.receive(t)
		}
		s := &scene{live: l}
		s.sessions[0].Store(l.receiver)
		var running sync.WaitGroup
		running.Go(func() { s.run(t, second, true) })
		s.run(t, first, false)
		s.close(t)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			running.Wait()
		}()
		select {
		case <-ended:
		case <-time.After(callPatience):
			// The second program waits without a time limit for an event of the resident session.
			call1(volsfu_close, l.receiver)
			<-ended
		}
		s.close(t)
	})
}

// scene is the state that the programs of one run share.
type scene struct {
	live                 *live
	sessions, publishers [places]atomic.Uint64
	listeners            [places]atomic.Uint64
}

// close closes the sessions of the programs. The library must not know their handles any more, nor their publishers'.
func (s *scene) close(t *testing.T) {
	for i := 1; i < places; i++ {
		if session := s.sessions[i].Swap(0); session != 0 {
			call1(volsfu_close, session)
			if status := call1(volsfu_close, session); status != statusHandle {
				t.Errorf("second close of a session: status %d, expected %d", status, statusHandle)
			}
		}
	}
}

// run interprets a program. waits permits calls that wait without a time limit.
func (s *scene) run(t *testing.T, code []byte, waits bool) {
	p := &program{t: t, scene: s, code: code, waits: waits}
	frame, event := structOf(volsfu_release_frame), structOf(volsfu_release_event)
	message := structOf(volsfu_release_message)
	set(&frame.size, uint64(unsafe.Sizeof(*frame)))
	set(&event.size, uint64(unsafe.Sizeof(*event)))
	set(&message.size, uint64(unsafe.Sizeof(*message)))
	listener := func() uint64 { return p.handle(&s.listeners, &s.publishers, uint64(frame.handle)) }
	session := func() uint64 { return p.handle(&s.sessions, &s.publishers, uint64(frame.handle)) }
	publisher := func() uint64 { return p.handle(&s.publishers, &s.sessions, uint64(event.handle)) }
	for range maxCalls {
		if len(p.code) == 0 {
			break
		}
		call := p.next() % calls
		switch call {
		case callConnect:
			p.connect()
		case callClose:
			// The resident session is closed in one of 16 cases, because another has to be opened then.
			if h := session(); h != s.live.receiver || p.next() == 0xff {
				p.check(call, call1(volsfu_close, h))
			}
		case callSetLimits:
			p.check(call, callRates(volsfu_set_limits, session(), p.number(), p.number()))
		case callSetViewpoint:
			v := second(volsfu_set_viewpoint)
			set(&v.size, p.size(unsafe.Sizeof(*v)))
			set(&v.at_us, p.number())
			fill(p, v.position[:])
			fill(p, v.orientation[:])
			p.check(call, callStruct(volsfu_set_viewpoint, session(), orNil(p, v)))
		case callServerTime:
			out := third(volsfu_server_time)
			unchanged(p, call, out, func() int32 {
				return callTimed(volsfu_server_time, session(), p.number(), orNil(p, out))
			})
		case callGetRoom:
			p.check(call, readText(p, volsfu_get_room, session()))
		case callGetStatistics:
			p.check(call, readText(p, volsfu_get_statistics, session()))
		case callNextFrame:
			set(&frame.size, p.size(unsafe.Sizeof(*frame)))
			unchanged(p, call, frame, func() int32 {
				return callTimed(volsfu_next_frame, session(), p.timeout(), orNil(p, frame))
			})
			set(&frame.size, uint64(unsafe.Sizeof(*frame)))
		case callReleaseFrame:
			unchanged(p, call, frame, func() int32 { return int32(volsfu_release_frame(orNil(p, frame))) })
		case callNextEvent:
			set(&event.size, p.size(unsafe.Sizeof(*event)))
			unchanged(p, call, event, func() int32 {
				return callTimed(volsfu_next_event, session(), p.timeout(), orNil(p, event))
			})
			set(&event.size, uint64(unsafe.Sizeof(*event)))
		case callReleaseEvent:
			unchanged(p, call, event, func() int32 { return int32(volsfu_release_event(orNil(p, event))) })
		case callSetAttributes:
			participant, attributes := secondOf3(volsfu_set_attributes), secondOf3(volsfu_set_attributes)
			name(p, &participant, "resident 1")
			name(p, &attributes, `{"color": "red"}`)
			p.check(call, callTexts(volsfu_set_attributes, session(), participant, attributes))
		case callPublishSound:
			p.publishSound(session())
		case callWriteSound:
			samples := arrayOf(secondOf4(volsfu_write_sound), 100)
			p.check(call, callSamples(volsfu_write_sound, publisher(), orNil(p, &samples[0]), p.count(len(samples)),
				p.number()))
		case callListen:
			p.listen(session())
		case callReadSound:
			samples := arrayOf(secondOf4(volsfu_read_sound), 100)
			p.check(call, callHeard(volsfu_read_sound, listener(), orNil(p, &samples[0]), p.count(len(samples)),
				orNil(p, fourth(volsfu_read_sound))))
		case callEndListening:
			p.check(call, call1(volsfu_end_listening, listener()))
		case callSendMessage:
			p.say(session())
		case callNextMessage:
			set(&message.size, p.size(unsafe.Sizeof(*message)))
			unchanged(p, call, message, func() int32 {
				return callTimed(volsfu_next_message, session(), p.timeout(), orNil(p, message))
			})
			set(&message.size, uint64(unsafe.Sizeof(*message)))
		case callReleaseMessage:
			unchanged(p, call, message, func() int32 { return int32(volsfu_release_message(orNil(p, message))) })
		case callSetQuality:
			p.choose(session())
		case callPublish:
			p.publish(session())
		case callUnpublish:
			p.check(call, call1(volsfu_unpublish, publisher()))
		case callWriteFrame:
			p.write(publisher())
		case callWanted:
			p.check(call, callRates(volsfu_wanted, publisher(), p.number()%3, p.number()))
		case callSetPose:
			pose := second(volsfu_set_pose)
			boxes := arrayOf(pose.boxes, 2)
			set(&pose.size, p.size(unsafe.Sizeof(*pose)))
			fill(p, pose.position[:])
			fill(p, pose.orientation[:])
			pose.boxes = orNil(p, &boxes[0])
			set(&pose.box_count, p.count(len(boxes)))
			p.check(call, callStruct(volsfu_set_pose, publisher(), orNil(p, pose)))
		case callGetTotals:
			out := second(volsfu_get_totals)
			set(&out.size, p.size(unsafe.Sizeof(*out)))
			unchanged(p, call, out, func() int32 { return callStruct(volsfu_get_totals, session(), orNil(p, out)) })
		}
	}
	// Frames and events that the program holds stay valid after the session's end.
	if frame.handle != 0 {
		p.read(unsafe.Pointer(frame.data), uint64(frame.length))
		p.check(callReleaseFrame, int32(volsfu_release_frame(frame)))
	}
	if message.handle != 0 {
		p.read(unsafe.Pointer(message.data), uint64(message.length))
		p.check(callReleaseMessage, int32(volsfu_release_message(message)))
	}
	if event.handle != 0 {
		p.read(unsafe.Pointer(event.json), 1)
		p.check(callReleaseEvent, int32(volsfu_release_event(event)))
	}
}

// program interprets bytes as calls, in one goroutine.
type program struct {
	t     *testing.T
	scene *scene
	code  []byte
	joins int
	waits bool
}

// next returns the next byte, 0 after the last.
func (p *program) next() byte {
	if len(p.code) == 0 {
		return 0
	}
	b := p.code[0]
	p.code = p.code[1:]
	return b
}

// number returns a small number or one at a limit.
func (p *program) number() int64 {
	limits := []int64{-1, -2, -3, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, latest, latest + 1}
	b := int(p.next())
	if b+len(limits) <= math.MaxUint8 {
		return int64(b)
	}
	return limits[math.MaxUint8-b]
}

// size returns the size of a struct, or a wrong one.
func (p *program) size(right uintptr) uint64 {
	if p.next() == 0xff {
		return uint64(right) + uint64(p.number())
	}
	return uint64(right)
}

// count returns the number of elements of an array, a smaller one, or one beyond every limit: the library has to refuse
// it before it reads the array.
func (p *program) count(length int) uint64 {
	switch b := p.next(); {
	case b == 0xff:
		return math.MaxUint32
	case b >= 0xf0:
		return uint64(b) % uint64(length)
	}
	return uint64(length)
}

// timeout returns the time limit of a waiting call in milliseconds.
func (p *program) timeout() int64 {
	switch b := p.next(); {
	case b == 0xff:
		return math.MinInt32
	case b == 0xfe && p.waits:
		return -1
	default:
		return int64(b % 4)
	}
}

// handle returns a handle of one of the shared objects, one of another kind, or another number.
func (p *program) handle(kind, other *[places]atomic.Uint64, held uint64) uint64 {
	switch b := p.next(); b % 16 {
	case 3:
		return other[b/16%places].Load()
	case 4:
		return held
	case 5:
		return kind[b/16%places].Load() + 1
	case 6:
		return kind[b/16%places].Load() ^ 1<<56
	case 7:
		return math.MaxUint64
	default:
		return kind[b%16%places].Load()
	}
}

// name sets a text: of a known object, empty, with a zero byte, too long, no UTF-8, or NULL.
func name[T any](p *program, to **T, known string) {
	switch p.next() {
	case 0xff:
	case 0xfe:
		put(to, nil)
	case 0xfd:
		put(to, bytes.Repeat([]byte("n"), maxText+1))
	case 0xfc:
		put(to, []byte{0xff, 0xfe})
	case 0xfb:
		put(to, []byte(known+"\x00behind"))
	default:
		put(to, []byte(known))
	}
}

// check expects a status that volsfu.h documents for a call.
func (p *program) check(call byte, status int32) {
	documented := status == statusOK || status == statusWanted && call == callWanted ||
		status <= firstMistake && status >= lastMistake || status <= firstImpossible && status >= lastImpossible ||
		status <= firstRefusal && status >= lastRefusal
	if !documented {
		p.t.Errorf("call %d: status %d", call, status)
	}
}

// read reads the ends of a block of memory. AddressSanitizer reports the reading of a freed block.
func (p *program) read(block unsafe.Pointer, length uint64) {
	if data := unsafe.Slice((*byte)(block), length); len(data) > 0 && int(data[0])+int(data[len(data)-1]) < 0 {
		p.t.Error("a byte is below 0")
	}
}

// connect opens a session, with the resident publisher's room in most cases, and puts it in place of another.
func (p *program) connect() {
	config, session := structFor(readConfig), second(volsfu_connect)
	set(&config.size, p.size(unsafe.Sizeof(*config)))
	set(&config.flags, uint64(1))
	set(&config.request_ms, callPatience.Milliseconds())
	set(&config.queue_frames, uint64(2))
	if p.next() == 0xff {
		set(&config.flags, p.number())
		set(&config.frame_bytes, p.number())
		set(&config.queue_bytes, p.number())
		set(&config.deadline_ms, p.number())
		set(&config.max_bitrate, p.number())
		set(&config.max_uplink, p.number())
		set(&config.min_uplink, p.number())
		// A server of the network must not be named: the address is always the test's.
		name(p, &config.token, "token")
	}
	put(&config.url, []byte(p.scene.live.url))
	name(p, &config.room, "fuzz")
	name(p, &config.identity, fmt.Sprintf("guest %d", p.scene.live.joins.Add(1)))
	if p.joins++; p.joins > maxJoins {
		return
	}
	unchanged(p, callConnect, session, func() int32 {
		return int32(volsfu_connect(orNil(p, config), orNil(p, session)))
	})
	if opened := uint64(*session); opened != 0 {
		if replaced := p.scene.sessions[1+p.joins%(places-1)].Swap(opened); replaced != 0 {
			p.check(callClose, call1(volsfu_close, replaced))
		}
	}
}

// publish publishes an object in place of another.
func (p *program) publish(session uint64) {
	publication, publisher := structFor(readPublication), third(volsfu_publish)
	tiles, qualities := arrayOf(publication.tiles, 2), arrayOf(publication.qualities, 2)
	set(&publication.size, p.size(unsafe.Sizeof(*publication)))
	set(&publication.flags, p.number()%3)
	set(&publication.mode, p.number()%3)
	name(p, &publication.name, fmt.Sprintf("object %d", p.next()%places))
	name(p, &publication.format, "codec=drco")
	name(p, &tiles[0].label, "head")
	name(p, &qualities[0].name, "low")
	set(&qualities[0].bitrate, p.number())
	publication.tiles, publication.qualities = orNil(p, &tiles[0]), orNil(p, &qualities[0])
	set(&publication.tile_count, p.count(len(tiles)))
	set(&publication.quality_count, p.count(len(qualities)))
	unchanged(p, callPublish, publisher, func() int32 {
		return callPair(volsfu_publish, session, orNil(p, publication), orNil(p, publisher))
	})
	if made := uint64(*publisher); made != 0 {
		p.scene.publishers[p.next()%places].Store(made)
	}
}

// publishSound publishes sound in place of another publication.
func (p *program) publishSound(session uint64) {
	sound, publisher := secondOf3(volsfu_publish_sound), third(volsfu_publish_sound)
	set(&sound.size, p.size(unsafe.Sizeof(*sound)))
	set(&sound.bitrate, p.number()*1000)
	name(p, &sound.name, fmt.Sprintf("voice %d", p.next()%places))
	unchanged(p, callPublishSound, publisher, func() int32 {
		return callPair(volsfu_publish_sound, session, orNil(p, sound), orNil(p, publisher))
	})
	if made := uint64(*publisher); made != 0 {
		p.scene.publishers[p.next()%places].Store(made)
	}
}

// listen opens a listener in place of another.
func (p *program) listen(session uint64) {
	participant, publication := secondOf4(volsfu_listen), secondOf4(volsfu_listen)
	name(p, &participant, "resident 1")
	name(p, &publication, fmt.Sprintf("voice %d", p.next()%places))
	out := fourth(volsfu_listen)
	unchanged(p, callListen, out, func() int32 {
		return callNames(volsfu_listen, session, participant, publication, orNil(p, out))
	})
	if made := uint64(*out); made != 0 {
		p.scene.listeners[p.next()%places].Store(made)
	}
}

// say sends a data message.
func (p *program) say(session uint64) {
	message, data := structFor(readMessage), []byte("hello")
	set(&message.size, p.size(unsafe.Sizeof(*message)))
	set(&message.flags, p.number()%5)
	name(p, &message.topic, "chat")
	to := arrayOf(message.to, 2)
	for i := range to {
		name(p, &to[i], "resident 1")
	}
	message.to = orNil(p, &to[0])
	set(&message.to_count, p.count(len(to)))
	message.data = unsafe.Pointer(orNil(p, &data[0]))
	set(&message.length, p.count(len(data)))
	p.check(callSendMessage, callStruct(volsfu_send_message, session, orNil(p, message)))
}

// write writes a frame.
func (p *program) write(publisher uint64) {
	frame, data := fourth(volsfu_write_frame), []byte("points of a small frame")
	set(&frame.size, p.size(unsafe.Sizeof(*frame)))
	set(&frame.number, p.number())
	set(&frame.capture_us, p.number())
	frame.data = unsafe.Pointer(orNil(p, &data[0]))
	set(&frame.length, uint64(len(data)))
	if p.next() == 0xff {
		set(&frame.length, uint64(guest.MaxFrameBytes)+1)
	}
	p.check(callWriteFrame, callTrack(volsfu_write_frame, publisher, p.number()%3, p.number()%3, orNil(p, frame)))
}

// choose chooses qualities of the resident publisher's object.
func (p *program) choose(session uint64) {
	one := structFor(readChoice)
	choices := arrayOf(one, 2)
	for i := range choices {
		name(p, &choices[i].participant, "resident 1")
		name(p, &choices[i].publication, "desk")
		set(&choices[i].tile, p.number())
		set(&choices[i].quality, p.number())
		set(&choices[i].qualities, p.number())
	}
	p.check(callSetQuality, callList(volsfu_set_quality, session, orNil(p, &choices[0]), p.count(len(choices))))
}

// readText reads a text into a buffer of the program, and checks its end and that nothing behind it was written.
func readText[H, N, R integer, B any](p *program, do func(H, *B, N, *N) R, session uint64) int32 {
	const guard = 0xa5
	buffer := bytes.Repeat([]byte{guard}, 1<<12)
	capacity := min(uint64(p.next())<<4, uint64(len(buffer)))
	length := orNil(p, new(N))
	var to *B
	if p.next() != 0xff {
		to = (*B)(unsafe.Pointer(&buffer[0]))
	}
	status := callText(do, session, to, capacity, length)
	end := bytes.IndexByte(buffer, 0)
	switch {
	case status == statusOK && (end < 0 || uint64(end) >= capacity || length != nil && uint64(*length) != uint64(end)):
		p.t.Errorf("a text of %d bytes in a buffer of %d bytes", end, capacity)
	case status != statusOK && end >= 0, bytes.Count(buffer[capacity:], []byte{guard}) < len(buffer)-int(capacity):
		p.t.Errorf("status %d: bytes behind a buffer of %d bytes were written", status, capacity)
	}
	return status
}

// unchanged makes a call and expects a documented status, and no other bytes in the output unless the call succeeds.
func unchanged[T any](p *program, call byte, out *T, do func() int32) {
	memory := unsafe.Slice((*byte)(unsafe.Pointer(out)), unsafe.Sizeof(*out))
	before := slices.Clone(memory)
	status := do()
	p.check(call, status)
	if status != statusOK && !bytes.Equal(before, memory) {
		p.t.Errorf("call %d with status %d has changed its output", call, status)
	}
}

// orNil returns the pointer, or in one of 256 cases NULL.
func orNil[T any](p *program, pointer *T) *T {
	if p.next() == 0xff {
		return nil
	}
	return pointer
}

// fill sets numbers, some of which are none.
func fill[F ~float64](p *program, to []F) {
	for i := range to {
		switch b := p.next(); b {
		case 0xff:
			to[i] = F(math.NaN())
		case 0xfe:
			to[i] = F(math.Inf(1))
		default:
			to[i] = F(b) / 64
		}
	}
}

// second, third and fourth allocate the C value that the argument of a function points to. arrayOf allocates an array.
func second[A, T, R any](func(A, *T) R) *T             { return new(T) }
func third[A, B, T, R any](func(A, B, *T) R) *T        { return new(T) }
func fourth[A, B, C, T, R any](func(A, B, C, *T) R) *T { return new(T) }
func arrayOf[T any](_ *T, length int) []T              { return make([]T, length) }

func secondOf3[A, T, B, R any](func(A, *T, B) R) *T       { return new(T) }
func secondOf4[A, T, B, C, R any](func(A, *T, B, C) R) *T { return new(T) }

// The following functions pass arguments of C types to exported functions.
func callStruct[H, R integer, T any](do func(H, *T) R, number uint64, with *T) int32 {
	return int32(do(H(number), with))
}

func callTimed[H, N, R integer, T any](do func(H, N, *T) R, number uint64, at int64, out *T) int32 {
	return int32(do(H(number), N(at), out))
}

func callPair[H, R integer, S, T any](do func(H, *S, *T) R, number uint64, with *S, out *T) int32 {
	return int32(do(H(number), with, out))
}

func callList[H, N, R integer, T any](do func(H, *T, N) R, number uint64, list *T, count uint64) int32 {
	return int32(do(H(number), list, N(count)))
}

func callText[H, N, R integer, B any](
	do func(H, *B, N, *N) R, number uint64, buffer *B, capacity uint64, length *N,
) int32 {
	return int32(do(H(number), buffer, N(capacity), length))
}

func callTrack[H, N, R integer, T any](do func(H, N, N, *T) R, number uint64, tile, quality int64, with *T) int32 {
	return int32(do(H(number), N(tile), N(quality), with))
}

func callTexts[H, R integer, T any](do func(H, *T, *T) R, number uint64, first, second *T) int32 {
	return int32(do(H(number), first, second))
}

func callNames[H, R integer, T, U any](do func(H, *T, *T, *U) R, number uint64, first, second *T, out *U) int32 {
	return int32(do(H(number), first, second, out))
}

func callSamples[H, N, I, R integer, T any](
	do func(H, *T, N, I) R, number uint64, list *T, count uint64, at int64,
) int32 {
	return int32(do(H(number), list, N(count), I(at)))
}

func callHeard[H, N, R integer, T, U any](
	do func(H, *T, N, *U) R, number uint64, list *T, count uint64, out *U,
) int32 {
	return int32(do(H(number), list, N(count), out))
}

func callRates[H, N, R integer](do func(H, N, N) R, number uint64, first, second int64) int32 {
	return int32(do(H(number), N(first), N(second)))
}
