package intruder

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/pion/dtls/v3/pkg/protocol/handshake"
	"github.com/pion/dtls/v3/pkg/protocol/recordlayer"
	"github.com/pion/sctp"
)

func TestRecords(t *testing.T) {
	for _, test := range []struct {
		name string
		got  []byte
		want string
	}{
		{"fragment", EmptyBeyondStart(0), "16fefd0000000000000001000c100000000000000005000000"},
		{"later fragment", EmptyBeyondStart(0x102), "16fefd0000000000000103000c100000000102000005000000"},
		{"alert", CloseNotify(), "15fefd00000000ffffffff00020100"},
	} {
		if got := hex.EncodeToString(test.got); got != test.want {
			t.Errorf("%s: got %s, expected %s", test.name, got, test.want)
		}
	}
}

// TestFragmentIsPions: Pion parses the fields of a fragment as they were written.
func TestFragmentIsPions(t *testing.T) {
	f := Fragment(CertificateMessage, 0x1234, 0x056789, 0x0abcde, []byte("body"))
	var h handshake.Header
	if err := h.Unmarshal(f); err != nil {
		t.Fatal(err)
	}
	want := handshake.Header{
		Type: handshake.TypeCertificate, Length: 0x056789, MessageSequence: 0x1234,
		FragmentOffset: 0x0abcde, FragmentLength: 4,
	}
	if h != want {
		t.Errorf("got %+v, expected %+v", h, want)
	}
	var r recordlayer.Header
	if err := r.Unmarshal(Record(Handshake, 7, f)); err != nil || r.SequenceNumber != 7 || r.ContentType != 22 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestMutatorRepeats: two mutators with one seed make the same records, and another seed makes others.
func TestMutatorRepeats(t *testing.T) {
	make := func(seed uint64) (all [][]byte) {
		m := NewMutator(seed)
		m.Learn([]byte("a record that a handshake has sent"))
		buffer := [2048]byte{}
		for range 200 {
			all = append(all, bytes.Clone(buffer[:m.Next(buffer[:])]))
		}
		return all
	}
	first, same, other := make(1), make(1), make(2)
	differs := 0
	for i := range first {
		if !bytes.Equal(first[i], same[i]) {
			t.Fatalf("record %d differs with the same seed", i)
		}
		if !bytes.Equal(first[i], other[i]) {
			differs++
		}
		if len(first[i]) > longest {
			t.Errorf("record %d has %d bytes, expected at most %d", i, len(first[i]), longest)
		}
	}
	if differs < len(first)/2 {
		t.Errorf("only %d of %d records differ with another seed", differs, len(first))
	}
}

func TestPackets(t *testing.T) {
	if n := len(EmptyFragments.Packet(1, 1)); n != 1148 {
		t.Errorf("a packet of empty fragments has %d bytes, expected 1,148", n)
	}
	if n := len(OpenedChannels.Packet(1, 1)); n != 1164 {
		t.Errorf("a packet that opens channels has %d bytes, expected 1,164", n)
	}
	// Pion refuses a packet with a wrong checksum before it parses the chunks.
	if n := sctp.TryMarshalUnmarshal(Garbage(1, 11, 0, nil)); n < 0 {
		t.Errorf("Pion reads no packet with a cookie's acknowledgement: %d", n)
	}
}

func TestAnswer(t *testing.T) {
	offer := "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n" +
		"m=audio 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\n" +
		"a=mid:0\r\na=ice-ufrag:theirs\r\na=recvonly\r\na=rtcp-mux\r\na=rtpmap:96 opus/48000/2\r\n" +
		"m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=sctp-port:5000\r\n"
	answer := Answer(offer, []netip.AddrPort{netip.MustParseAddrPort("10.8.0.9:1000")})
	for _, want := range []string{
		"a=group:BUNDLE 0 1\r\n", "a=sendonly\r\na=ssrc:1000 cname:mallory\r\n", "a=mid:1\r\n", "a=sctp-port:5000\r\n",
		"a=setup:active\r\n",
		"a=candidate:1 1 udp 2130706431 10.8.0.9 1000 typ host\r\n",
	} {
		if !strings.Contains(answer, want) {
			t.Errorf("%q is not in the answer:\n%s", want, answer)
		}
	}
	if strings.Contains(answer, "theirs") || strings.Count(answer, "a=candidate:") != 1 {
		t.Errorf("the answer repeats what is the offer's alone, or candidates:\n%s", answer)
	}
}
