package srtp

import (
	"testing"

	"github.com/pion/rtp"
	pion "github.com/pion/srtp/v3"

	"github.com/volsfu/volsfu/test/race"
)

// benchmarkPayload is the usual maximum payload.
const benchmarkPayload = 1200

// TestAllocations checks that packets cost no memory, including refused ones.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("allocations are not counted under the race detector")
	}
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 8192)
		h, payload, buffer := fullHeader(t, 1, 0), make([]byte, benchmarkPayload), make([]byte, 0, 1500)
		forged := make([]byte, 0, 1500)
		check := func(what string, want float64, step func() error, expected error) {
			t.Helper()
			var err error
			if got := testing.AllocsPerRun(1000, func() { err = step() }); got != want || err != expected {
				t.Errorf("%s, %s: %v allocations, %v; expected %v, %v", p, what, got, err, want, expected)
			}
		}
		check("Seal", 0, func() error {
			h.SequenceNumber++
			_, err := sealer.Seal(buffer, h, payload)
			return err
		}, nil)
		check("Seal and Open", 0, func() error {
			h.SequenceNumber++
			sealed, err := sealer.Seal(buffer, h, payload)
			if err != nil {
				return err
			}
			_, err = opener.Open(sealed)
			return err
		}, nil)
		check("replay", 0, func() error {
			_, err := opener.Open(buffer[:16+benchmarkPayload+32])
			return err
		}, ErrReplayed)
		if p == AES128CMHMACSHA180 {
			continue // Pion creates state for every packet of a new stream, and drops it
		}
		sealed, err := sealer.Seal(forged, header(2, 1), payload)
		if err != nil {
			t.Fatal(err)
		}
		check("forgery", 0, func() error {
			sealed[fixedHeaderSize] ^= 1
			_, err := opener.Open(sealed)
			return err
		}, ErrAuthentication)
	}
}

func BenchmarkSeal(b *testing.B) {
	for _, p := range profiles {
		h, payload, buffer := fullHeader(b, 1, 0), make([]byte, benchmarkPayload), make([]byte, 0, 1500)
		b.Run(p.String()+"/own", func(b *testing.B) {
			sealer, _ := newPair(b, p, 8192)
			b.ReportAllocs()
			for b.Loop() {
				h.SequenceNumber++
				if _, err := sealer.Seal(buffer, h, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(p.String()+"/pion", func(b *testing.B) {
			context, parsed := newPionContext(b, p), rtp.Header{}
			b.ReportAllocs()
			for b.Loop() {
				h.SequenceNumber++
				plain := buffer[:1500]
				n, err := h.MarshalTo(plain)
				if err != nil {
					b.Fatal(err)
				}
				n += copy(plain[n:], payload)
				if _, err := context.EncryptRTP(buffer, plain[:n], &parsed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen opens copies of sealed packets; copying is included, about 30 ns.
func BenchmarkOpen(b *testing.B) {
	const window, batch = 8192, 4096
	for _, p := range profiles {
		sealer, _ := newPair(b, p, window)
		var packets [batch][]byte
		for i := range packets {
			sealed, err := sealer.Seal(make([]byte, 0, 1500), fullHeader(b, 1, uint16(i)),
				make([]byte, benchmarkPayload))
			if err != nil {
				b.Fatal(err)
			}
			packets[i] = sealed
		}
		run := func(name string, renew func() func([]byte) error) {
			b.Run(p.String()+"/"+name, func(b *testing.B) {
				buffer := make([]byte, 1500)
				b.ReportAllocs()
				var open func([]byte) error
				for i := 0; b.Loop(); i++ {
					if i%batch == 0 {
						b.StopTimer()
						open = renew()
						b.StartTimer()
					}
					if err := open(buffer[:copy(buffer, packets[i%batch])]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("own", func() func([]byte) error {
			_, opener := newPair(b, p, window)
			return func(packet []byte) error {
				_, err := opener.Open(packet)
				return err
			}
		})
		run("pion", func() func([]byte) error {
			context, parsed := newPionContext(b, p, pion.SRTPReplayProtection(window)), rtp.Header{}
			return func(packet []byte) error {
				_, err := context.DecryptRTP(packet, packet, &parsed)
				return err
			}
		})
	}
}
