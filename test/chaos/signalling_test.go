package chaos

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/wait"
)

func behave(t *testing.T, r *room) { r.mallory(t, puppet.Config{}).depart(t) }

func leave(t *testing.T, r *room) {
	p := r.join(t, "mallory")
	for _, name := range r.names {
		wait.Until(t, "mallory receives "+name, func() bool { return p.Tile(tileOf(name, 0)).Frames > 0 })
	}
	p.Leave()
}

// die stops mallory's TCP and UDP. The server detects this while the following mischiefs run.
func die(t *testing.T, r *room) {
	r.fifth(t, "mallory who dies", puppet.Config{}).Die()
}

// stopReading requests replies without reading them. Thousands are needed to fill sockets and backlog.
func stopReading(t *testing.T, r *room) {
	m := r.mallory(t, puppet.Config{})
	m.Deafen()
	request := &signal.Unpublish{Header: signal.Header{ID: "x"},
		Publication: strings.Repeat("n", volumetric.MaxNameLength)}
	const most = 500_000
	for i := range most {
		if m.Send(request) != nil {
			t.Logf("disconnected after %d requests", i)
			return
		}
	}
	t.Errorf("%d replies were not read, and the server did not mind", most)
}

// comeBack repeatedly breaks its websocket, and resumes with the right and the wrong secret.
func comeBack(t *testing.T, r *room) {
	p := r.dial(t, puppet.Config{})
	joined, err := p.Join(greeting("mallory"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		wrong := greeting("mallory")
		wrong.Resume = &signal.ResumeRequest{Session: joined.Session, Secret: "wrong"}
		refused := r.dial(t, puppet.Config{})
		if _, err := refused.Join(wrong); err == nil {
			t.Fatal("resumed with a wrong secret")
		}
		if i%2 == 0 {
			p.Hang()
		}
		right := greeting("mallory")
		right.Resume = &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret, NewConnection: true}
		p = r.dial(t, puppet.Config{})
		if joined, err = p.Join(right); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "mallory is connected", p.Connected)
	if _, err := p.Request(&signal.Leave{}); err != nil {
		t.Error(err)
	}
}

// nuisances are invalid messages that do not end the connection.
var nuisances = []string{
	`{"type":"answer","offer":"one"}`,
	`{"type":"answer","offer":-1,"sdp":"v=0"}`,
	`{"type":"answer","offer":4294967296,"sdp":"v=0"}`,
	`{"type":"acknowledge","slots":null}`,
	`{"type":"acknowledge","slots":[{"mid":"zzz","generation":4294967295}]}`,
	`{"type":"acknowledge","slots":[{"mid":"1","generation":4294967295}]}`,
	`{"type":"acknowledge","slots":[{"mid":"1","generation":-1}]}`,
	`{"type":"acknowledge","slots":[` + strings.Repeat(`{"mid":"1","generation":0},`, 5000) +
		`{"mid":"1","generation":0}]}`,
	`{"type":"set_quality"}`,
	`{"type":"set_quality","choices":[{}]}`,
	`{"type":"set_quality","choices":[{"participant":"alice","publication":"body","tile":99,"quality":0}]}`,
	`{"type":"set_quality","choices":[{"participant":"alice","publication":"body","tile":-1,"quality":0}]}`,
	`{"type":"set_quality","choices":[{"participant":"alice","publication":"body","quality":[0,1]}]}`,
	`{"type":"set_quality","choices":[{"participant":"alice","publication":"body","quality":1e300}]}`,
	`{"type":"set_quality","choices":[{"participant":"nobody","publication":"nothing","quality":63}]}`,
	`{"type":"publish"}`,
	`{"type":"publish","publication":{"name":"body"}}`,
	`{"type":"publish","publication":{"name":"x","kind":"video","mode":"alternatives",` +
		`"codec":{"mime_type":"video/x\r\na=evil","clock_rate":90000},"tiles":[{}],"qualities":[{}]}}`,
	`{"type":"publish","publication":{"name":"x","kind":"audio","mode":"alternatives",` +
		`"codec":{"mime_type":"audio/opus","clock_rate":48000},"tiles":[{},{}],"qualities":[{}]}}`,
	`{"type":"publish","publication":{"name":"x","kind":"video","mode":"alternatives",` +
		`"codec":{"mime_type":"video/x","clock_rate":90000},"frame_rate":-1,"tiles":[{}],"qualities":[{}]}}`,
	`{"type":"unpublish","publication":""}`,
	`{"type":"join","version":1,"room":"room","identity":"alice"}`,
	`{"type":"joined"}`,
	`{"type":"offer","sdp":"v=0"}`,
	`{"type":"time","t0_us":"now"}`,
	`{"type":"\u0000","id":"\ud800"}`,
}

// violations end the connection.
var violations = []string{
	``, ` `, `null`, `[]`, `"join"`, `{`, `{}`, `{"type":null}`, `{"type":7}`, `hello`, "\xff\xfe\xfd",
	`{"type":"join"} trailing`,
	strings.Repeat(`[`, 100_000), `{"type":"leave","id":"` + strings.Repeat("x", 1000) + `"}`,
	`{"type":"leave","id":"` + strings.Repeat("x", 3<<20) + `"}`,
}

// brokenFrames are bytes that are not valid websocket frames of a client (RFC 6455 section 5.2).
var brokenFrames = []string{
	"\x81\x05hello",                             // not masked
	"\xf1\x80\x00\x00\x00\x00",                  // reserved bits
	"\x83\x80\x00\x00\x00\x00",                  // reserved opcode
	"\x80\x80\x00\x00\x00\x00",                  // continuation without a start
	"\x89\xfe\x01\x00\x00\x00\x00\x00",          // ping of 256 bytes
	"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff0", // a length of 2^64 - 1
	"\x88\x81\x00\x00\x00\x00x",                 // close with one byte
	"GET / HTTP/1.1\r\n\r\n",
}

func sendGarbageMessages(t *testing.T, r *room) {
	m := r.mallory(t, puppet.Config{})
	for _, text := range nuisances {
		if err := m.Write(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatalf("%.60s: %v", text, err)
		}
		alive(t, m.Puppet)
	}
	m.depart(t)
	binary := r.dial(t, puppet.Config{})
	_ = binary.Write(websocket.BinaryMessage, make([]byte, 1000))
	ended(t, binary)
	for i, text := range violations {
		p := r.dial(t, puppet.Config{})
		if i%2 == 0 {
			if _, err := p.Join(greeting("mallory")); err != nil {
				t.Fatalf("before %.60q: %v", text, err)
			}
		}
		// Writing fails if the server closes before it has read everything.
		_ = p.Write(websocket.TextMessage, []byte(text))
		ended(t, p)
	}
	for _, frame := range brokenFrames {
		p := r.dial(t, puppet.Config{})
		_ = p.WriteBytes([]byte(frame))
		ended(t, p)
	}
	for _, text := range []string{"\x16\x03\x01\x02\x00", "GET /v1/signal HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
		strings.Repeat("x", 1<<20) + "\r\n\r\n"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.Server.URL(), "ws://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}

func haveAbsurdNames(t *testing.T, r *room) {
	long := strings.Repeat("ñ", volumetric.MaxNameLength/2)
	taken := []string{
		"../../etc/passwd", `"quoted"`, `back\slash`, "a/b/c", "%s%n%d", "<script>", "体 🧍 עברית", "e\u0301", long, " ",
		"...", "-1", "null",
		"body\u2028", "a=mid:0", "{}", "'; DROP TABLE rooms; --",
	}
	refused := []string{"", "a\nb", "a\r\na=candidate:1", "nul\x00", long + "x", "\x7f", "\ufffd", ".", ".."}
	p := r.dial(t, puppet.Config{})
	if _, err := p.Join(greeting("../мэллори \"🙃\"")); err != nil {
		t.Fatal(err)
	}
	for _, name := range taken {
		publication := load.Publication()
		publication.Name = name
		publication.Tiles[0].Label, publication.Qualities[0].Name = name, name
		if _, err := p.Request(&signal.Publish{Publication: publication}); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		for _, peer := range r.peers {
			wait.Until(t, fmt.Sprintf("everybody knows of %q", name), func() bool {
				for _, other := range peer.Session.Participants() {
					for _, publication := range other.Publications {
						if publication.Name == name {
							return true
						}
					}
				}
				return false
			})
		}
		if _, err := p.Request(&signal.Unpublish{Publication: name}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range refused {
		publication := load.Publication()
		publication.Name = name
		if _, err := p.Request(&signal.Publish{Publication: publication}); err == nil {
			t.Errorf("a publication of the name %q was taken", name)
		}
		alive(t, p)
		other := r.dial(t, puppet.Config{})
		if _, err := other.Join(&signal.Join{Version: 1, Room: "room", Identity: name}); err == nil {
			t.Errorf("an identity %q was taken", name)
		}
	}
	if _, err := p.Request(&signal.Leave{}); err != nil {
		t.Error(err)
	}
}

// sendGarbageCandidates sends hundreds of candidates, none of which can be used.
func sendGarbageCandidates(t *testing.T, r *room) {
	m := r.mallory(t, puppet.Config{})
	candidates := []string{
		"", "candidate", "candidate:", "garbage", "candidate:1 1 udp 1 nowhere 1 typ host",
		"candidate:1 1 udp 1 127.0.0.1 99999 typ host",
		"candidate:1 1 udp -1 127.0.0.1 9 typ host", "candidate:1 1 sctp 1 127.0.0.1 9 typ host",
		"candidate:1 1 udp 1 127.0.0.1 9 typ alien",
		"candidate:1 1 tcp 1 127.0.0.1 22 typ host tcptype passive", "candidate:1 1 udp 1 a0b1c2d3.local 9 typ host",
		"candidate:1 1 udp 1 255.255.255.255 9 typ host", "candidate:1 1 udp 1 0.0.0.0 0 typ host",
		"candidate:1 1 udp 1 ::1 9 typ host",
		strings.Repeat("x", 1024), "candidate:" + strings.Repeat("1 ", 400),
	}
	for i := range 400 {
		candidate := candidates[i%len(candidates)]
		if i >= len(candidates) {
			candidate = fmt.Sprintf("candidate:%d 1 udp 1 127.0.0.1 %d typ host", i, 1+i)
		}
		if err := m.Send(&signal.Candidate{Candidate: candidate, MID: "0", LineIndex: i % 7}); err != nil {
			t.Fatal(err)
		}
	}
	alive(t, m.Puppet)
	wait.Until(t, "some are refused", func() bool { return len(m.Errors()) > 0 })
	m.depart(t)
}

func publishAndUnpublish(t *testing.T, r *room) {
	p := r.join(t, "mallory")
	for i := range 25 {
		more := load
		more.Name, more.Tiles, more.Qualities = fmt.Sprintf("object %d", i%3), 1+i%9, 1+i%3
		ctx, cancel := contextWithPatience()
		publisher, err := p.Session.Publish(ctx, more.Publication())
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			number := uint32(0)
			wait.Until(t, "a frame is sent", func() bool {
				number++
				return writeFrame(publisher, number) == nil
			})
		}
		if err := p.Session.Unpublish(ctx, more.Name); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	p.Leave()
}

func switchQualities(t *testing.T, r *room) {
	p := r.join(t, "mallory")
	for _, name := range r.names {
		for i := range load.Tiles {
			wait.Until(t, "mallory receives "+name, func() bool { return p.Tile(tileOf(name, i)).Frames > 0 })
		}
	}
	selections := []signal.Selection{signal.Only(0), signal.Only(1), signal.Auto(), signal.Only(volumetric.QualityOff),
		signal.Only(0)}
	began := time.Now()
	switches := 0
	for i := 0; i < 1000 || time.Since(began) < time.Second; i++ {
		var choices []signal.Choice
		for j, name := range r.names {
			tile := (i + j) % load.Tiles
			choices = append(choices, signal.Choice{PublicationRef: tileOf(name, 0).PublicationRef, Tile: &tile,
				Quality: selections[(i+j)%len(selections)]})
		}
		ctx, cancel := contextWithPatience()
		if err := p.Session.SetQuality(ctx, choices...); err != nil {
			t.Fatal(err)
		}
		cancel()
		switches += len(choices)
	}
	for _, s := range p.Session.Stats() {
		if s.Undecodable > 0 {
			t.Errorf("%v: %d frames are undecodable after %d switches", s.Track, s.Undecodable, switches)
		}
	}
	p.Leave()
}
