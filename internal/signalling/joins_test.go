package signalling

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/pkg/signal"
)

var noon = time.Unix(1_795_188_600, 0)

// wrongJoin is a join that is refused before a room is involved, because the token is for another room.
const wrongJoin = `{"type":"join","version":1,"room":"attic","identity":"eve"}`

// TestRefusedJoinsEndTheWebsocket checks that a websocket ends with a reason after five refused joins.
func TestRefusedJoinsEndTheWebsocket(t *testing.T) {
	c := newTestClient(t, DefaultConfig())
	c.credentials.Room = "lab"
	for i := 1; i <= maxRefusedJoins; i++ {
		if going := c.take([]byte(wrongJoin), noon); going != (i < maxRefusedJoins) {
			t.Fatalf("after %d refused joins the websocket goes on: %t", i, going)
		}
	}
	if c.reason() != signal.CodeRateLimited || !strings.Contains(c.outbox.reason, "5 joins were refused") {
		t.Errorf("closed with %q, %q", c.reason(), c.outbox.reason)
	}
}

// TestJoinsOfOneAddress checks that the join rate of one address is limited over all of its websockets, and that long
// messages count as several joins. Another address is not affected.
func TestJoinsOfOneAddress(t *testing.T) {
	config := DefaultConfig()
	config.AddressRate, config.AddressBurst = 1e-9, 20
	first := newTestClient(t, config)
	try := func(address string, text string) signal.Code {
		c := newTestClient(t, config)
		c.server, c.source = first.server, netip.MustParsePrefix(address+"/32")
		c.credentials.Room = "lab"
		c.take([]byte(text), noon)
		return c.reason()
	}
	long := wrongJoin[:len(wrongJoin)-1] + `,"x":"` + strings.Repeat("x", 9*joinUnit) + `"}`
	if code := try("203.0.113.9", long); code != "" {
		t.Fatalf("closed with %q for the first join", code)
	}
	for i := range 10 {
		if code := try("203.0.113.9", wrongJoin); code != "" {
			t.Fatalf("closed with %q after %d joins", code, i+1)
		}
	}
	if code := try("203.0.113.9", wrongJoin); code != signal.CodeRateLimited {
		t.Errorf("closed with %q for one join too many, expected %q", code, signal.CodeRateLimited)
	}
	if code := try("203.0.113.10", wrongJoin); code != "" {
		t.Errorf("another address: closed with %q", code)
	}
}

// TestRefusalLog checks that five refusals of one address are logged at once, and that a later line has the number of
// suppressed lines.
func TestRefusalLog(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := NewLog(zap.New(core))
	const ada, grace = "203.0.113.9:1", "203.0.113.10:1"
	for i := range 100 {
		l.Refused(noon, fmt.Sprintf("203.0.113.9:%d", i), "join refused", zap.String("code", "limit"))
	}
	if n := logs.Len(); n != refusalLines {
		t.Errorf("%d lines of one address, expected %d", n, refusalLines)
	}
	l.Refused(noon, grace, "join refused")
	if logs.Len() != refusalLines+1 {
		t.Error("another address has no line")
	}
	logs.TakeAll()
	l.Refused(noon.Add(time.Second), ada, "join refused")
	if all := logs.TakeAll(); len(all) != 1 || all[0].ContextMap()["suppressed"] != int64(100-refusalLines) {
		t.Errorf("the next lines are %v", all)
	}
	l.Refused(noon.Add(2*time.Second), ada, "join refused")
	if all := logs.TakeAll(); len(all) != 1 || all[0].ContextMap()["suppressed"] != nil {
		t.Errorf("the lines after that are %v", all)
	}
	for i := range 2 * maxRefused {
		l.Refused(noon.Add(2*time.Second), fmt.Sprintf("10.%d.%d.1:1", i/256, i%256), "join refused")
	}
	if len(l.sources) > maxRefused+1 {
		t.Errorf("%d addresses are counted, expected %d at most", len(l.sources), maxRefused)
	}
	if n := logs.Len(); n > maxRefused+refusalLines {
		t.Errorf("%d lines of ever other addresses, expected %d at most", n, maxRefused+refusalLines)
	}
}

// TestLogForHTTP checks the bound of an http.Server's lines about failed connections.
func TestLogForHTTP(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	failures := NewLog(zap.New(core)).ForHTTP()
	for i := range 100 {
		failures.Printf("http: TLS handshake error from 203.0.113.%d:1: EOF", i)
	}
	all := logs.All()
	// The test may take longer than a second.
	if len(all) < refusalLines || len(all) > 2*refusalLines {
		t.Fatalf("%d lines, expected %d", len(all), refusalLines)
	}
	if all[0].Message != "http: TLS handshake error from 203.0.113.0:1: EOF" || len(all[0].Context) != 0 {
		t.Errorf("the line is %q with %v", all[0].Message, all[0].Context)
	}
}

// BenchmarkRefusedJoin measures one refused join from its text on, without the websocket.
func BenchmarkRefusedJoin(b *testing.B) {
	config := DefaultConfig()
	c := newTestClient(b, config)
	c.credentials.Room = "lab"
	b.ReportAllocs()
	for b.Loop() {
		c.refused = 0
		c.take([]byte(wrongJoin), noon.Add(time.Hour))
		c.outbox.queue = c.outbox.queue[:0]
		c.inbox.messages.SetBurst(1 << 30)
	}
}
