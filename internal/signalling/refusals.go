package signalling

import (
	"log"
	"net/netip"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// refusalLines bounds the lines about the refusals of one address in any second. A line has some 300 bytes, so an
	// address that does nothing else fills 130 MB a day.
	refusalLines = 5
	// maxRefused bounds the addresses whose lines are counted by themselves, at some 200 bytes each. All further ones
	// share one count: whoever comes from ever other addresses does not get more lines by that.
	maxRefused = 4096
)

// Log is the log of signalling. It bounds the lines about refusals per address. All servers of signalling and the door
// in front of them share one, so that the bound holds for all their lines. It is safe for concurrent use.
type Log struct {
	*zap.Logger

	mu      sync.Mutex
	sources map[netip.Prefix]*refusedSource
}

// refusedSource is an address that was refused something. All addresses of this host are one.
type refusedSource struct {
	// lines are the times of the last lines, a ring. The line at oldest is to be replaced next.
	lines  [refusalLines]time.Time
	oldest int
	// suppressed is how many lines were left out since the last one.
	suppressed int
}

// NewLog makes a log that writes to another.
func NewLog(log *zap.Logger) *Log {
	return &Log{Logger: log, sources: make(map[netip.Prefix]*refusedSource)}
}

// ForHTTP makes the log of an http.Server. All failed TLS handshakes together have the bound of one address.
func (l *Log) ForHTTP() *log.Logger { return log.New(httpLines{l}, "", 0) }

type httpLines struct{ log *Log }

// handshakes is what failed TLS handshakes count as; it is no address of a client.
var handshakes = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

// Write implements io.Writer. The data are one line.
func (h httpLines) Write(data []byte) (int, error) {
	line := strings.TrimSpace(string(data))
	if strings.HasPrefix(line, "http: TLS handshake error") {
		h.log.refusedOf(handshakes, time.Now(), line)
	} else {
		h.log.Warn(line)
	}
	return len(data), nil
}

// Refused logs that a remote address was refused something, unless the address has had its lines. The next line says
// how many were left out.
func (l *Log) Refused(now time.Time, remote, what string, fields ...zap.Field) {
	l.refusedOf(SourceOf(remote), now, what, append(fields, zap.String("remote", remote))...)
}

// refusedOf is Refused for what counts as one address.
func (l *Log) refusedOf(source netip.Prefix, now time.Time, what string, fields ...zap.Field) {
	suppressed, due := l.take(source, now)
	if !due {
		return
	}
	if suppressed > 0 {
		fields = append(fields, zap.Int("suppressed", suppressed))
	}
	l.Warn(what, fields...)
}

// take reports whether a line is due for a source, and how many were left out since the last one.
func (l *Log) take(source netip.Prefix, now time.Time) (suppressed int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sources[source]
	if s == nil {
		if len(l.sources) >= maxRefused {
			l.forget(now)
		}
		if len(l.sources) >= maxRefused {
			source = netip.Prefix{}
			s = l.sources[source]
		}
	}
	if s == nil {
		s = &refusedSource{}
		l.sources[source] = s
	}
	if now.Sub(s.lines[s.oldest]) < time.Second {
		s.suppressed++
		return 0, false
	}
	s.lines[s.oldest] = now
	s.oldest = (s.oldest + 1) % refusalLines
	suppressed, s.suppressed = s.suppressed, 0
	return suppressed, true
}

// forget drops the sources that had no line in the last second. The caller holds the mutex.
func (l *Log) forget(now time.Time) {
	for source, s := range l.sources {
		if newest := s.lines[(s.oldest+refusalLines-1)%refusalLines]; now.Sub(newest) >= time.Second {
			delete(l.sources, source)
		}
	}
}

// SourceOf is what counts as one address, for a remote address as HTTP has it; zero for this host and for what is none.
func SourceOf(remote string) netip.Prefix {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	source, limited := ratelimit.Source(peer.Addr())
	if !limited {
		return netip.Prefix{}
	}
	return source
}
