package codepoints

import (
	"testing"

	"github.com/volsfu/volsfu/internal/ecn"
)

// ipv4 and ipv6 return a UDP datagram in an IP packet with a codepoint.
func ipv4(codepoint ecn.Codepoint, datagram ...byte) []byte {
	header := make([]byte, 24) // with one option
	header[0], header[1], header[9] = 0x46, 0xb8|byte(codepoint), 17
	return append(append(header, 0, 1, 0, 2, 0, 0, 0, 0), datagram...)
}

func ipv6(codepoint ecn.Codepoint, datagram ...byte) []byte {
	header := make([]byte, 40)
	header[0], header[1], header[6] = 0x6b, 0x80|byte(codepoint)<<4, 17
	return append(append(header, 0, 1, 0, 2, 0, 0, 0, 0), datagram...)
}

// TestCounts counts packets of all protocols over both address families, and ignores others.
func TestCounts(t *testing.T) {
	tap := &Tap{flows: make(map[Flow]*Counts)}
	padding := make([]byte, 20)
	for _, first := range [][]byte{{0x80, 96}, {0x90, 0xe0}, {0x81, 205}, {0, 1}, {22, 254}, {200, 0}} {
		tap.count(ipv4(ecn.ECT1, append(first, padding...)...))
		tap.count(ipv6(ecn.CE, append(first, padding...)...))
	}
	tcp := ipv4(ecn.ECT1, padding...)
	tcp[9] = 6
	for _, packet := range [][]byte{tcp, make([]byte, 60), ipv6(ecn.ECT1)[:44], nil} {
		tap.count(packet)
	}
	flow := Flow{1, 2}
	counts := tap.Flow(flow)
	for p, want := range map[Protocol]int{RTP: 2, RTCP: 1, STUN: 1, DTLS: 1, Other: 1} {
		if got := counts.Protocols[p]; got != [4]int{ecn.ECT1: want, ecn.CE: want} {
			t.Errorf("%v: counted %v by codepoint, expected %d as ECT(1) and as CE", p, got, want)
		}
	}
	if counts.Payloads[96] != [4]int{ecn.ECT1: 2, ecn.CE: 2} {
		t.Errorf("payload type 96 was counted as %v", counts.Payloads[96])
	}
	if flows := tap.Flows(2); len(flows) != 1 || flows[0] != flow || len(tap.Flows(3)) != 0 {
		t.Errorf("the flows of port 2 are %v", flows)
	}
	if other := tap.Flow(flow.Back()); other.Of(RTP) != 0 {
		t.Errorf("the flow back has %v", &other)
	}
}
