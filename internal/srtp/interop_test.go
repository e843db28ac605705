package srtp

import (
	"bytes"
	"testing"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// packetKinds are packets with all combinations of header fields, all of one stream.
func packetKinds(t testing.TB) []rtp.Packet {
	t.Helper()
	padded := fullHeader(t, 7, 5)
	padded.Padding, padded.PaddingSize = true, 9
	probe := header(7, 6)
	probe.Padding, probe.PaddingSize = true, 255
	twoByte := header(7, 7)
	if err := twoByte.SetExtensionWithProfile(200, make([]byte, 100), rtp.ExtensionProfileTwoByte); err != nil {
		t.Fatal(err)
	}
	return []rtp.Packet{
		{Header: *header(7, 1), Payload: []byte("payload")},
		{Header: *header(7, 2)},
		{Header: *fullHeader(t, 7, 3), Payload: bytes.Repeat([]byte{1, 2, 3}, 400)},
		{Header: *fullHeader(t, 7, 4)},
		{Header: *padded, Payload: []byte("payload")},
		{Header: *probe},
		{Header: *twoByte, Payload: []byte("payload")},
	}
}

// TestSealForPion checks that Pion opens packets sealed by a Sealer, with the same result as Pion's own encoding.
func TestSealForPion(t *testing.T) {
	for _, p := range profiles {
		sealer, _ := newPair(t, p, 64)
		context := newPionContext(t, p)
		for _, packet := range packetKinds(t) {
			want, err := packet.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			buffer := append(make([]byte, 0, 1500), "before"...)
			buffer, err = sealer.Seal(buffer, &packet.Header, packet.Payload)
			if err != nil {
				t.Fatalf("%s, packet %d: %v", p, packet.SequenceNumber, err)
			}
			sealed, found := bytes.CutPrefix(buffer, []byte("before"))
			if !found || len(sealed) != len(want)+sealer.Overhead() {
				t.Fatalf("%s, packet %d: %d bytes became %d", p, packet.SequenceNumber, len(want), len(sealed))
			}
			if got, err := context.DecryptRTP(nil, sealed, nil); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, packet %d: Pion opened %x, %v; expected %x", p, packet.SequenceNumber, got, err, want)
			}
		}
	}
}

// TestOpenFromPion checks that an Opener opens packets sealed by Pion.
func TestOpenFromPion(t *testing.T) {
	for _, p := range profiles {
		_, opener := newPair(t, p, 64)
		context := newPionContext(t, p)
		for _, packet := range packetKinds(t) {
			want, err := packet.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			sealed, err := context.EncryptRTP(nil, want, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := opener.Open(sealed)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, packet %d: opened %x, %v; expected %x", p, packet.SequenceNumber, got, err, want)
			} else if &got[0] != &sealed[0] {
				t.Errorf("%s, packet %d was not opened in place", p, packet.SequenceNumber)
			}
		}
	}
}

// compound is an RTCP compound of two packets.
func compound(t testing.TB, ssrc uint32) []byte {
	t.Helper()
	raw, err := rtcp.Marshal([]rtcp.Packet{
		&rtcp.ReceiverReport{SSRC: ssrc, Reports: []rtcp.ReceptionReport{{SSRC: 1, LastSequenceNumber: 2}}},
		&rtcp.TransportLayerNack{SenderSSRC: ssrc, MediaSSRC: 1, Nacks: []rtcp.NackPair{{PacketID: 3}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestRTCPWithPion(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 64)
		opening, sealing := newPionContext(t, p), newPionContext(t, p)
		want := compound(t, 9)
		for range 3 {
			buffer, err := sealer.SealRTCP(append(make([]byte, 0, 200), "before"...), want)
			if err != nil {
				t.Fatal(err)
			}
			sealed, found := bytes.CutPrefix(buffer, []byte("before"))
			if !found || len(sealed) != len(want)+sealer.OverheadRTCP() {
				t.Fatalf("%s: %d bytes became %d", p, len(want), len(sealed))
			}
			if got, err := opening.DecryptRTCP(nil, sealed, nil); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: Pion opened %x, %v; expected %x", p, got, err, want)
			}
			if sealed, err = sealing.EncryptRTCP(nil, want, nil); err != nil {
				t.Fatal(err)
			}
			if got, err := opener.OpenRTCP(sealed); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: opened %x, %v; expected %x", p, got, err, want)
			} else if &got[0] != &sealed[0] {
				t.Errorf("%s was not opened in place", p)
			}
		}
	}
}

// TestDirections checks that each side opens the packets of the other, and none of its own.
func TestDirections(t *testing.T) {
	for _, p := range profiles {
		for _, client := range []bool{true, false} {
			k := testKeys(t, p)
			sealer, err := NewSealer(k, client)
			if err != nil {
				t.Fatal(err)
			}
			other, err := NewOpener(k, !client, 64)
			if err != nil {
				t.Fatal(err)
			}
			own, err := NewOpener(k, client, 64)
			if err != nil {
				t.Fatal(err)
			}
			sealed := mustSeal(t, sealer, 1, 1)
			mustOpen(t, other, sealed, 1)
			mustRefuse(t, own, sealed, 1, ErrAuthentication)
		}
	}
}
