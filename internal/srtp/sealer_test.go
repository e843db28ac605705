package srtp

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pion/rtp"
)

// TestSealOnce checks that no index is sealed twice, in any order, and that a refusal has no effect.
func TestSealOnce(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, MaxWindow)
		refuse := func(index uint64) {
			t.Helper()
			if out, err := sealer.Seal(make([]byte, 0, 1500), header(1, uint16(index)),
				[]byte("other")); !errors.Is(err, ErrIndexUsed) || out != nil {
				t.Fatalf("%s: packet %d again gives %d bytes and %v", p, index, len(out), err)
			}
		}
		// Numbers 65,500 to 65,599, across the rollover; every third is reserved and sealed late.
		for index := uint64(65500); index < 65600; index++ {
			if index%3 == 0 {
				continue
			}
			mustOpen(t, opener, mustSeal(t, sealer, 1, index), index)
			refuse(index)
		}
		for index := uint64(65500); index < 65600; index++ {
			if index%3 == 0 {
				mustOpen(t, opener, mustSeal(t, sealer, 1, index), index)
			}
			refuse(index)
		}
		// Another stream has its own indices.
		mustOpen(t, opener, mustSeal(t, sealer, 2, 65510), 65510)
		// The oldest index in the window, and the one before it.
		const highest = 65536 + 40000
		mustOpen(t, opener, mustSeal(t, sealer, 1, highest-10000), highest-10000)
		mustOpen(t, opener, mustSeal(t, sealer, 1, highest), highest)
		mustOpen(t, opener, mustSeal(t, sealer, 1, highest-sealedWindow+1), highest-sealedWindow+1)
		refuse(highest - sealedWindow + 1)
		refuse(highest - sealedWindow)
		mustOpen(t, opener, mustSeal(t, sealer, 1, highest+1), highest+1)
	}
}

// TestSealRefusals checks refusals, and that the index can still be used afterwards.
func TestSealRefusals(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 64)
		short, size := []byte("payload"), fixedHeaderSize+len("payload")+sealer.Overhead()
		crowded := header(1, 1)
		crowded.CSRC = make([]uint32, 16)
		unaligned := header(1, 1)
		unaligned.Extension, unaligned.ExtensionProfile = true, 0x1234
		if err := unaligned.SetExtension(0, []byte{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			header *rtp.Header
			room   int
			want   error
		}{
			"no room for the header": {header(1, 1), fixedHeaderSize - 1, ErrNoRoom},
			"no room for the tag":    {header(1, 1), size - 1, ErrNoRoom},
			"version 0":              {&rtp.Header{SSRC: 1, SequenceNumber: 1}, 1500, ErrMalformed},
			"16 CSRCs":               {crowded, 1500, ErrMalformed},
			"extension of 3 bytes":   {unaligned, 1500, ErrMalformed},
		} {
			dst := append(make([]byte, 0, 6+c.room), "before"...)
			if out, err := sealer.Seal(dst, c.header, short); !errors.Is(err, c.want) || out != nil {
				t.Errorf("%s, %s: %d bytes and %v, expected %v", p, name, len(out), err, c.want)
			}
			if string(dst) != "before" {
				t.Errorf("%s, %s: overwrote existing data: %q", p, name, dst)
			}
		}
		sealed, err := sealer.Seal(make([]byte, 0, size), header(1, 1), short)
		if err != nil || len(sealed) != size {
			t.Fatalf("%s: into %d bytes: %d, %v", p, size, len(sealed), err)
		}
		if out, err := opener.Open(sealed); err != nil || !bytes.HasSuffix(out, short) {
			t.Errorf("%s: opened %q, %v", p, out, err)
		}
	}
}

// TestSealInPlace checks that a payload may be at its final position.
func TestSealInPlace(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 64)
		buffer := make([]byte, 1500)
		payload := append(buffer[fixedHeaderSize:fixedHeaderSize], "payload"...)
		sealed, err := sealer.Seal(buffer[:0], header(1, 1), payload)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := opener.Open(sealed); err != nil || !bytes.HasSuffix(out, []byte("payload")) {
			t.Errorf("%s: RTP opened as %q, %v", p, out, err)
		}
		want := compound(t, 1)
		n := copy(buffer, want)
		if sealed, err = sealer.SealRTCP(buffer[:0], buffer[:n]); err != nil {
			t.Fatal(err)
		}
		if out, err := opener.OpenRTCP(sealed); err != nil || !bytes.Equal(out, want) {
			t.Errorf("%s: RTCP opened as %x, %v", p, out, err)
		}
	}
}

func TestSealRTCPRefusals(t *testing.T) {
	for _, p := range profiles {
		sealer, _ := newPair(t, p, 64)
		packet := compound(t, 1)
		size := len(packet) + sealer.OverheadRTCP()
		for name, c := range map[string]struct {
			packet []byte
			room   int
			want   error
		}{
			"no room":        {packet, size - 1, ErrNoRoom},
			"short":          {packet[:7], 1500, ErrMalformed},
			"not version 2":  {append([]byte{0x40}, packet[1:]...), 1500, ErrMalformed},
			"nothing at all": {nil, 1500, ErrMalformed},
		} {
			if out, err := sealer.SealRTCP(make([]byte, 0, c.room), c.packet); !errors.Is(err, c.want) || out != nil {
				t.Errorf("%s, %s: %d bytes and %v, expected %v", p, name, len(out), err, c.want)
			}
		}
		if out, err := sealer.SealRTCP(make([]byte, 0, size), packet); err != nil || len(out) != size {
			t.Errorf("%s: into %d bytes: %d, %v", p, size, len(out), err)
		}
		sealer.rtcp.SetIndex(1, 1<<31-1)
		if _, err := sealer.SealRTCP(make([]byte, 0, size), packet); !errors.Is(err, ErrIndexUsed) {
			t.Errorf("%s: index 2^31 gives %v", p, err)
		}
	}
}

// TestLastIndex checks that the rollover counter does not roll over.
func TestLastIndex(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 64)
		sealer.sealed.accept(1, nil, maxIndex-1)
		opener.opened.accept(1, nil, maxIndex-1)
		sealed := mustSeal(t, sealer, 1, maxIndex)
		if p != AES128CMHMACSHA180 { // Pion knows streams only from packets
			mustOpen(t, opener, sealed, maxIndex)
		} else {
			opener.opened.accept(1, opener.opened.last, maxIndex)
		}
		if _, err := sealer.Seal(make([]byte, 0, 1500), header(1, 0), nil); !errors.Is(err, ErrIndexUsed) {
			t.Errorf("%s: sealing index 2^48 gives %v", p, err)
		}
		first := mustSeal(t, sealer, 2, 0)
		copy(first[8:12], []byte{0, 0, 0, 1})
		mustRefuse(t, opener, first, maxIndex+1, ErrReplayed)
	}
}
