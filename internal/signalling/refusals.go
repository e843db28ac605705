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
	// refusalLines bounds the log lines about refusals of one address in any second. A line has some 300 bytes, so one
	// address can write 130 MB a day.
	refusalLines = 5
	// maxRefused bounds the addresses with their own count, at some 200 bytes each. All further addresses share one
	// count, so a client with many addresses does not get more lines.
	maxRefused = 4096
)

// Log is the log of signalling. A Log bounds the lines about refusals per address. All signalling servers and
// AddressLimits share one Log, so the bound covers the lines of all. Log is safe for concurrent use.
type Log struct {
	*zap.Logger

	mu      sync.Mutex
	sources map[netip.Prefix]*refusedSource
}

// refusedSource is an address whose requests were refused. All addresses of this host are one source.
type refusedSource struct {
	// lines is a ring of the times of the last lines. The entry at oldest is replaced next.
	lines  [refusalLines]time.Time
	oldest int
	// suppressed is the number of lines that were left out since the last line.
	suppressed int
}

// NewLog returns a log that writes to log.
func NewLog(log *zap.Logger) *Log {
	return &Log{Logger: log, sources: make(map[netip.Prefix]*refusedSource)}
}

// ForHTTP returns the log of an http.Server. All failed TLS handshakes together have the bound of one address.
func (l *Log) ForHTTP() *log.Logger { return log.New(httpLines{l}, "", 0) }

type httpLines struct{ log *Log }

// handshakes is the source of all failed TLS handshakes. handshakes is not the address of a client.
var handshakes = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

// Write implements io.Writer. data is one line.
func (h httpLines) Write(data []byte) (int, error) {
	line := strings.TrimSpace(string(data))
	if strings.HasPrefix(line, "http: TLS handshake error") {
		h.log.refusedOf(handshakes, time.Now(), line)
	} else {
		h.log.Warn(line)
	}
	return len(data), nil
}

// Refused logs a refusal of a remote address, unless the address has exceeded its bound. The next line has the number
// of lines that were left out.
func (l *Log) Refused(now time.Time, remote, what string, fields ...zap.Field) {
	l.refusedOf(SourceOf(remote), now, what, append(fields, zap.String("remote", remote))...)
}

// refusedOf logs a refusal of one source.
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

// take reports whether a line of a source is due and returns the number of lines left out since the last line.
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

// forget removes the sources without a line in the last second. The caller holds the mutex.
func (l *Log) forget(now time.Time) {
	for source, s := range l.sources {
		if newest := s.lines[(s.oldest+refusalLines-1)%refusalLines]; now.Sub(newest) >= time.Second {
			delete(l.sources, source)
		}
	}
}

// SourceOf returns the prefix that counts as one address. remote has the form of http.Request.RemoteAddr. The result is
// zero for addresses of this host and if remote is not an address.
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
