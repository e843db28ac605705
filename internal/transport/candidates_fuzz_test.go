package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/transport/transporttest"
)

// candidateBytes is the number of input bytes for one candidate.
const candidateBytes = 12

// candidateOf makes the text of a candidate (RFC 8839 section 5.1) from candidateBytes bytes. Most are almost valid.
func candidateOf(b []byte) string {
	pick := func(n byte, from ...string) string { return from[int(n)%len(from)] }
	four, six := netip.AddrFrom4([4]byte(b[4:8])), [16]byte{0x20, 0x01, 0x0d, 0xb8}
	copy(six[12:], b[4:8])
	// Some first bytes make addresses of the kinds that are forbidden or special.
	six[0] ^= b[8] & 0xf0
	host := pick(b[3], four.String(), four.String(), four.String(), netip.AddrFrom16(six).String(),
		netip.AddrFrom16(four.As16()).String(), "fe80::1%eth0", "127.0.0.1", "198.51.100.1", "255.255.255.255",
		"224.0.0.5",
		"0.0.0.0", "::", "::1", "ff02::1", "169.254.1.1", "host.example.org", "4c1f8a3e.local", "", "1.2.3.4.5")
	number := fmt.Sprint(binary.BigEndian.Uint16(b[9:]))
	port := pick(b[2], number, number, "0", "65536", "-1", "x", "")
	return fmt.Sprintf("%s%d %s %s %s %s %s typ %s%s", pick(b[0], "candidate:", "candidate:", "candidate:", ""), b[8],
		pick(b[0]>>2, "1", "1", "1", "2", "0", "-1", "70000", ""),
		pick(b[1], "udp", "udp", "udp", "UDP", "tcp", "ssltcp", "sctp", ""),
		pick(b[1]>>3, "2130706431", "1", "0", "4294967296", "-5", "x"), host, port,
		pick(b[11], "host", "host", "srflx", "prflx", "relay", "none", ""),
		pick(b[11]>>3, "", "", " tcptype passive", " raddr 10.0.0.1 rport 9", " generation 0 ufrag x network-cost 10",
			" ufrag", " raddr", " tcptype", " \x00 \xff"))
}

// FuzzCandidate adds candidates to a peer of a server: the lines of a text, and the candidates that candidateOf makes
// of bytes. Half of them are added before the answer. The invariants:
//   - An error wraps ErrCandidate.
//   - Until ICE restarts, the first description.MaxCandidates different candidates are accepted, and no others.
//   - The ICE agent receives no UDP candidate, because nothing authentic arrives.
//   - Checks are sent only to permitted addresses of candidates, and their number is bounded.
func FuzzCandidate(f *testing.F) {
	// A byte of 0 chooses the most usual form.
	right := []byte{0, 0, 0, 0, 203, 0, 113, 9, 1, 0x23, 0x28, 0}
	with := func(at int, value byte) []byte {
		b := append([]byte(nil), right...)
		b[at] = value
		return b
	}
	f.Add("", right)
	var many []byte
	for n := range byte(80) {
		many = append(many, with(7, n)...)
	}
	f.Add("", many)
	for n := range byte(20) {
		f.Add("", append(with(3, n), right...))
	}
	f.Add("candidate:1 1 udp 2130706431 203.0.113.5 9000 typ host\n"+
		"candidate:2 1 tcp 1 203.0.113.5 9 typ host tcptype active", right)
	f.Add("candidate:\n \ngarbage\ncandidate:1 1 udp 1 nowhere 1 typ host", []byte{})
	f.Add(strings.Repeat("candidate:1 1 udp 1 203.0.113.5 1 typ host"+strings.Repeat(" x y", 200)+"\n", 3), right)
	answer := without(answerTo(f, offerLines(f, newLone(f, loopbackConfig()))), "a=candidate")
	f.Fuzz(func(t *testing.T, texts string, structured []byte) {
		if len(structured) > 100*candidateBytes || len(texts) > 1<<16 {
			return
		}
		named := strings.Split(texts, "\n")
		for ; len(structured) >= candidateBytes; structured = structured[candidateBytes:] {
			named = append(named, candidateOf(structured))
		}
		synctest.Test(t, func(t *testing.T) { nameTo(t, answer, named) })
	})
}

// nameTo adds candidates to a peer whose remote peer does not exist.
func nameTo(t *testing.T, answer string, named []string) {
	conn := transporttest.NewBlackhole()
	config := DefaultConfig()
	config.TCP = false
	endpoint, err := Attach(config, conn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = endpoint.Close() }()
	p, err := endpoint.NewPeer(newRecorder())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	offerLines(t, p)
	taken := map[string]bool{}
	for n, candidate := range named {
		if n == len(named)/2 {
			if _, err := p.Answered(answer); err != nil {
				t.Fatal(err)
			}
		}
		err := p.AddCandidate(Candidate{Candidate: candidate, MID: "0"})
		if err != nil && !errors.Is(err, ErrCandidate) {
			t.Errorf("candidate %q: got %v, expected an error around ErrCandidate", candidate, err)
		}
		switch {
		case taken[candidate] && err != nil:
			t.Errorf("candidate %q is refused the second time: %v", candidate, err)
		case !taken[candidate] && len(taken) == description.MaxCandidates && err == nil:
			t.Errorf("candidate %q is taken beyond %d others", candidate, len(taken))
		case len(taken) < description.MaxCandidates:
			taken[candidate] = true
		}
	}
	if len(p.agent.named) != len(taken) {
		t.Errorf("%d candidates are kept, expected %d", len(p.agent.named), len(taken))
	}
	// The last check to an address that does not answer leaves some 7 s after the first.
	time.Sleep(20 * time.Second)
	remotes, err := p.agent.GetRemoteCandidates()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range remotes {
		if c.NetworkType().IsUDP() {
			t.Errorf("the ICE agent has the candidate %v, from which nothing has come", c)
		}
	}
	checkSent(t, conn, taken)
}

// Bounds of the ICE mux: checks to one named address, and to all addresses that have not answered a check.
const (
	namedAttempts = 10
	maxUnanswered = 100
)

// checkSent fails the test if datagrams were sent to forbidden addresses, or too many.
func checkSent(t *testing.T, conn *transporttest.Blackhole, taken map[string]bool) {
	t.Helper()
	asked := map[netip.AddrPort]bool{}
	for candidate := range taken {
		// The fields are separated by single spaces (RFC 8839 section 5.1). Some may be empty.
		fields := strings.Split(candidate, " ")
		if len(fields) < 6 {
			continue
		}
		if address, err := netip.ParseAddrPort(net.JoinHostPort(fields[4], fields[5])); err == nil {
			asked[netip.AddrPortFrom(address.Addr().Unmap(), address.Port())] = true
		}
	}
	total := 0
	for to, count := range conn.Sent() {
		total += count
		if !asked[to] {
			t.Errorf("%d checks went to %v, which no candidate names", count, to)
		}
		a := to.Addr()
		if to.Port() == 0 || !a.IsGlobalUnicast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			t.Errorf("%d checks went to %v, where a participant must not make the server send", count, to)
		}
		if count > namedAttempts {
			t.Errorf("%d checks went to %v, expected at most %d", count, to, namedAttempts)
		}
	}
	if total > maxUnanswered {
		t.Errorf("%d checks went out, expected at most %d", total, maxUnanswered)
	}
}
