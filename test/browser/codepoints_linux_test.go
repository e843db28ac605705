package browser

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/wait"
)

// markingConn is a UDP socket over IPv4 that carries codepoints, and marks RTP packets to the browser like a queue:
// every markEvery-th packet that leaves as ECT(1) becomes CE. The browser alone sends and receives RTP.
type markingConn struct {
	*net.UDPConn

	mu sync.Mutex
	// pure is set when no more packets are to be marked.
	pure  bool
	peers map[netip.AddrPort]*peerMarks
}

// peerMarks counts the RTP packets to a peer and from it.
type peerMarks struct{ to, from direction }

// direction counts packets by codepoint, before marking, and marks.
type direction struct {
	packets [4]int64
	marked  int64
}

// markEvery is the distance of two marks. With a share of marks of 1/20, Prague is in equilibrium at 19 Mbit/s (2 × 480
// kbit/s / share), above the rates of the test.
const markEvery = 20

func listenMarking(t *testing.T) *markingConn {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTOS, 1); err != nil {
				t.Errorf("IP_RECVTOS: %v", err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return &markingConn{UDPConn: conn, peers: make(map[netip.AddrPort]*peerMarks)}
}

// isRTP reports whether a datagram is RTP and not RTCP, STUN or DTLS (RFC 7983, RFC 5761 section 4).
func isRTP(b []byte) bool { return len(b) >= 12 && b[0]>>6 == 2 && (b[1] < 192 || b[1] > 223) }

// mark counts a packet from or to a peer, and returns the codepoint with which it continues.
func (c *markingConn) mark(b []byte, peer netip.AddrPort, from bool, codepoint ecn.Codepoint) ecn.Codepoint {
	if !isRTP(b) {
		return codepoint
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.peers[peer]
	if counts == nil {
		counts = &peerMarks{}
		c.peers[peer] = counts
	}
	d := &counts.to
	if from {
		d = &counts.from
	}
	d.packets[codepoint]++
	if from || c.pure || counts.from.packets == [4]int64{} || codepoint != ecn.ECT1 ||
		d.packets[codepoint]%markEvery != 0 {
		return codepoint
	}
	d.marked++
	return ecn.CE
}

// browser returns the counts of the peer that sends RTP packets and is sent RTP packets.
func (c *markingConn) browser() peerMarks {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, counts := range c.peers {
		if counts.to.packets != [4]int64{} && counts.from.packets != [4]int64{} {
			return *counts
		}
	}
	return peerMarks{}
}

// stop ends marking.
func (c *markingConn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pure = true
}

// ReadECN reads a datagram with its codepoint.
func (c *markingConn) ReadECN(b []byte) (int, netip.AddrPort, ecn.Codepoint, error) {
	control := make([]byte, unix.CmsgSpace(4))
	n, controls, _, from, err := c.ReadMsgUDPAddrPort(b, control)
	if err != nil {
		return n, from, ecn.NotECT, err
	}
	codepoint := ecn.NotECT
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_TOS && len(m.Data) > 0 {
			codepoint = ecn.Codepoint(m.Data[0] & 3)
		}
	}
	return n, from, c.mark(b[:n], from, true, codepoint), err
}

// WriteECN writes a datagram with a codepoint.
func (c *markingConn) WriteECN(b []byte, to netip.AddrPort, codepoint ecn.Codepoint) (int, error) {
	codepoint = c.mark(b, to, false, codepoint)
	control := make([]byte, unix.CmsgSpace(4))
	binary.NativeEndian.PutUint64(control, uint64(unix.CmsgLen(4)))
	binary.NativeEndian.PutUint32(control[8:], unix.IPPROTO_IP)
	binary.NativeEndian.PutUint32(control[12:], unix.IP_TOS)
	binary.NativeEndian.PutUint32(control[16:], uint32(codepoint))
	n, _, err := c.WriteMsgUDPAddrPort(b, control, to)
	return n, err
}

// ReadFromAddrPort reads a datagram.
func (c *markingConn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	n, from, _, err := c.ReadECN(b)
	return n, from, err
}

// WriteToAddrPort writes a datagram as Not-ECT.
func (c *markingConn) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	return c.WriteECN(b, to, ecn.NotECT)
}

// browserCounts are the browser's counts of packets by codepoint.
type browserCounts struct{ Packets, ECT1, CE int64 }

// counted holds the counts that the page reports.
type counted struct {
	// Received are the packets that arrived at the browser.
	Received browserCounts
	// Offer and Answer are the descriptions of server and browser.
	Offer, Answer string
}

// reportsByStream returns the numbers of lines with RTP, and of those among them with reports by RFC 8888.
func reportsByStream(description string) (lines, byStream int) {
	sections := strings.Split(description, "\nm=")
	for _, section := range sections[1:] {
		if strings.HasPrefix(section, "application") {
			continue
		}
		lines++
		// Chromium answers for each payload type.
		if strings.Contains(section, " ack ccfb") {
			byStream++
		}
	}
	return lines, byStream
}

// TestCodepointsOfChromium has Chromium receive frames on media lines and publish sound, with and without RFC 8888. The
// server's socket marks packets: with RFC 8888, the browser receives every mark and reports it, except for lost
// packets. Without RFC 8888, RTP leaves as Not-ECT in both directions. Chromium's own congestion control does not use
// ECN: its RTP always leaves as Not-ECT.
func TestCodepointsOfChromium(t *testing.T) {
	long.Test(t)
	tools(t)
	peer(t)
	file := filepath.Join(t.TempDir(), "speech.wav")
	if err := os.WriteFile(file, syllables(), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{os.Getenv("CHROMIUM_ARGUMENTS"), "--use-fake-device-for-media-stream",
		"--use-fake-ui-for-media-stream", "--use-file-for-fake-audio-capture=" + file}
	t.Run("RFC 8888", func(t *testing.T) {
		t.Setenv("CHROMIUM_ARGUMENTS", strings.Join(append(arguments,
			"--force-fieldtrials=WebRTC-RFC8888CongestionControlFeedback/Enabled/"), " "))
		conn, s, v := visitMarked(t)
		var c counted
		v.expect("counted", &c)
		if lines, byStream := reportsByStream(c.Offer); lines == 0 || lines != byStream {
			t.Errorf("%d of %d offered lines have reports by RFC 8888", byStream, lines)
		}
		if lines, byStream := reportsByStream(c.Answer); byStream == 0 || lines != byStream ||
			strings.Contains(c.Answer, "transport-cc") {
			t.Errorf("%d of %d answered lines have reports by RFC 8888, expected all, without transport-cc", byStream,
				lines)
		}
		// On a busy machine a server may give ECN up, because reports are missing.
		fellBack := func() bool { s := s.Stats(); return s.ECNFallbacks != [len(s.ECNFallbacks)]uint64{} }
		wait.Until(t, "20 packets are marked, or some before a fallback", func() bool {
			marked := conn.browser().to.marked
			return marked >= 20 || marked > 0 && fellBack()
		})
		conn.stop()
		made := conn.browser().to
		reported := func() int64 { return int64(s.Stats().TransportMarked) }
		// unreported bounds the marks that are not reported: packets that were lost, or reported too late. At least
		// half of the marks are reported on any machine.
		unreported := func() int64 {
			s := s.Stats()
			return min(int64(s.TransportLost+s.TransportUnmatched), made.marked/2)
		}
		wait.Until(t, "all marks are reported", func() bool {
			v.goOn()
			v.expect("counted", &c)
			return min(c.Received.CE, reported())+unreported() >= made.marked
		})
		t.Logf("%d packets to the browser, %d of them marked, %d marks arrived, %d reported, at most %d not",
			made.packets[ecn.ECT1], made.marked, c.Received.CE, reported(), unreported())
		if c.Received.CE > made.marked || reported() > made.marked || s.Stats().TransportFalseMarks > 0 {
			t.Errorf("more marks than were made, and %d false ones, expected none", s.Stats().TransportFalseMarks)
		}
		v.say("end")
		v.expect("done", nil)
	})
	t.Run("transport-wide feedback", func(t *testing.T) {
		t.Setenv("CHROMIUM_ARGUMENTS", strings.Join(arguments, " "))
		conn, s, v := visitMarked(t)
		var c counted
		v.expect("counted", &c)
		if lines, byStream := reportsByStream(c.Answer); lines == 0 || byStream > 0 ||
			!strings.Contains(c.Answer, "transport-cc") {
			t.Errorf("%d of %d answered lines have reports by RFC 8888, expected none, with transport-cc", byStream,
				lines)
		}
		var sent peerMarks
		wait.Until(t, "media flows both ways, and reports arrive", func() bool {
			sent = conn.browser()
			return sent.to.packets[ecn.NotECT] > 20 && sent.from.packets[ecn.NotECT] > 20 &&
				s.Stats().TransportReceived > 100
		})
		for _, packets := range [][4]int64{sent.to.packets, sent.from.packets} {
			if packets[ecn.ECT1]+packets[ecn.ECT0]+packets[ecn.CE] > 0 {
				t.Errorf("RTP packets left as %v, expected all as Not-ECT", packets)
			}
		}
		v.say("end")
		v.expect("done", nil)
	})
}

// visitMarked starts a server behind a marking socket, a publisher of frames, and the page.
func visitMarked(t *testing.T) (*markingConn, *server.Server, *visit) {
	t.Helper()
	conn := listenMarking(t)
	s := start(t, func(o *server.Options) { o.Media = conn })
	publish(t, s, "ada")
	listen(t, s) // sound without a listener is not sent
	return conn, s, begin(t, "codepoints.mjs", pageURL(s))
}
