package signalling

import (
	"bufio"
	"net"
	"net/http"
	"runtime"
	"testing"

	"github.com/gorilla/websocket"
)

// hijacked is a response whose connection is hijacked, with the buffers of an http.Server.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	const size = 4 << 10
	return h.conn, bufio.NewReadWriter(bufio.NewReaderSize(h.conn, size), bufio.NewWriterSize(h.conn, size)), nil
}

// deafConn accepts writes and has nothing to read.
type deafConn struct{ net.Conn }

func (deafConn) Write(b []byte) (int, error) { return len(b), nil }

// open upgrades a connection to a websocket.
func open(tb testing.TB, conn net.Conn, config *Config) *websocket.Conn {
	tb.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://sfu.example.org/", nil)
	if err != nil {
		tb.Fatal(err)
	}
	request.Header = http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}
	upgrader := NewUpgrader(config)
	ws, err := Upgrade(&upgrader, &hijacked{conn: conn}, request)
	if err != nil {
		tb.Fatal(err)
	}
	return ws
}

// TestIdleWebsocketsHoldLittle checks that an idle websocket has no buffers except those of its HTTP connection.
func TestIdleWebsocketsHoldLittle(t *testing.T) {
	const websockets, most = 200, 14 << 10
	config := DefaultConfig()
	config.JoinTimeout = 0
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	all := make([]*websocket.Conn, 0, websockets)
	before := inUse()
	for range websockets {
		near, _ := net.Pipe()
		ws := open(t, deafConn{near}, &config)
		if err := ws.WriteMessage(websocket.TextMessage, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		all = append(all, ws)
	}
	if each := (inUse() - before) / websockets; each > most {
		t.Errorf("an idle websocket holds %d bytes, expected at most %d", each, most)
	}
	runtime.KeepAlive(all)
}
