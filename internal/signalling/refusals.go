package signalling

import (
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/transport"
)

const (
	// refusalLines bounds the lines about the refusals of one address in any second. A line has some 300 bytes, so an
	// address that does nothing else fills 130 MB a day.
	refusalLines = 5
	// maxRefused bounds the addresses whose lines are counted by themselves, at some 200 bytes each. All further ones
	// share one count: whoever comes from ever other addresses does not get more lines by that.
	maxRefused = 4096
)

// refusalLog logs what clients are refused, so many lines for each address. It is safe for concurrent use.
type refusalLog struct {
	log *zap.Logger

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

func newRefusalLog(log *zap.Logger) *refusalLog {
	return &refusalLog{log: log, sources: make(map[netip.Prefix]*refusedSource)}
}

// refused logs that a remote address was refused something, unless the address has had its lines. The next line says
// how many were left out.
func (l *refusalLog) refused(now time.Time, remote, what string, fields ...zap.Field) {
	suppressed, due := l.take(sourceOf(remote), now)
	if !due {
		return
	}
	fields = append(fields, zap.String("remote", remote))
	if suppressed > 0 {
		fields = append(fields, zap.Int("suppressed", suppressed))
	}
	l.log.Warn(what, fields...)
}

// take reports whether a line is due for a source, and how many were left out since the last one.
func (l *refusalLog) take(source netip.Prefix, now time.Time) (suppressed int, due bool) {
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
func (l *refusalLog) forget(now time.Time) {
	for source, s := range l.sources {
		if newest := s.lines[(s.oldest+refusalLines-1)%refusalLines]; now.Sub(newest) >= time.Second {
			delete(l.sources, source)
		}
	}
}

// sourceOf is what counts as one address, for a remote address as HTTP has it; zero for this host and for what is none.
func sourceOf(remote string) netip.Prefix {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	source, limited := transport.Source(peer.Addr())
	if !limited {
		return netip.Prefix{}
	}
	return source
}
