package srtp

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	pion "github.com/pion/srtp/v3"
)

// TestRollover sends three times the range of sequence numbers, with loss, reordering and packets repaired long after.
func TestRollover(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 8192)
		random := rand.New(rand.NewPCG(3, uint64(p)))
		type packet struct {
			index  uint64
			sealed []byte
		}
		var late []packet
		for index := uint64(60000); index < 60000+3*65536; index++ {
			// Away from the rollovers, most packets are lost.
			if near := (index + 300) % 65536; near > 600 && random.IntN(100) != 0 {
				continue
			}
			sealed := mustSeal(t, sealer, 1, index)
			switch random.IntN(10) {
			case 0: // lost
			case 1, 2:
				late = append(late, packet{index, sealed})
			default:
				mustOpen(t, opener, sealed, index)
			}
			if len(late) > 50 {
				i := random.IntN(len(late))
				if index-late[i].index < 8000 {
					mustOpen(t, opener, late[i].sealed, late[i].index)
				}
				late[i] = late[len(late)-1]
				late = late[:len(late)-1]
			}
		}
	}
}

// TestAroundRollover checks a few packets out of order around the second rollover.
func TestAroundRollover(t *testing.T) {
	const edge = 2 << 16
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 256)
		sealed := make(map[uint64][]byte)
		for _, index := range []uint64{40000, 65536 + 1, 65536 + 32000, 65536 + 50000, edge - 200, edge - 100, edge - 2,
			edge - 1, edge, edge + 1, edge + 100} {
			sealed[index] = mustSeal(t, sealer, 1, index)
		}
		for _, index := range []uint64{40000, 65536 + 1, 65536 + 32000, 65536 + 50000, edge - 100, edge + 1, edge - 1,
			edge, edge + 100, edge - 2} {
			mustOpen(t, opener, sealed[index], index)
			mustRefuse(t, opener, sealed[index], index, ErrReplayed)
		}
		mustRefuse(t, opener, sealed[edge-200], edge-200, ErrReplayed)
	}
}

// TestReplays checks that replays are refused within the window and beyond it, and that the window has its size.
func TestReplays(t *testing.T) {
	for _, p := range profiles {
		for _, window := range []int{MinWindow, 100, 8192} {
			sealer, opener := newPair(t, p, window)
			last := uint64(1000 + window)
			old, oldest, inside := mustSeal(t, sealer, 1, last-uint64(window)),
				mustSeal(t, sealer, 1, last-uint64(window)+1), mustSeal(t, sealer, 1, last-10)
			first, newest := mustSeal(t, sealer, 1, 0), mustSeal(t, sealer, 1, last)
			mustOpen(t, opener, first, 0)
			mustOpen(t, opener, inside, last-10)
			mustOpen(t, opener, newest, last)
			mustRefuse(t, opener, newest, last, ErrReplayed)
			mustRefuse(t, opener, inside, last-10, ErrReplayed)
			mustRefuse(t, opener, first, 0, ErrReplayed)
			mustRefuse(t, opener, old, last-uint64(window), ErrReplayed)
			mustOpen(t, opener, oldest, last-uint64(window)+1)
			mustRefuse(t, opener, oldest, last-uint64(window)+1, ErrReplayed)
		}
	}
}

func TestRTCPReplays(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, MinWindow)
		var sealed [][]byte
		for range 100 {
			out, err := sealer.SealRTCP(make([]byte, 0, 200), compound(t, 1))
			if err != nil {
				t.Fatal(err)
			}
			sealed = append(sealed, out)
		}
		check := func(i int, want error) {
			t.Helper()
			if _, err := opener.OpenRTCP(bytes.Clone(sealed[i])); !errors.Is(err, want) {
				t.Errorf("%s: packet %d gives %v, expected %v", p, i, err, want)
			}
		}
		check(50, nil)
		check(50, ErrReplayed)
		check(40, nil)
		check(99, nil)
		check(99, ErrReplayed)
		check(50, ErrReplayed)
		check(99-MinWindow, ErrReplayed)
		check(99-MinWindow+1, nil)
	}
}

// TestForgeries checks that a packet modified in any bit is refused, and leaves no trace: no state, and no moved
// rollover counter or window.
func TestForgeries(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 64)
		sealed := mustSeal(t, sealer, 1, 1000)
		var following [][]byte
		for index := uint64(1001); index < 1100; index++ {
			following = append(following, mustSeal(t, sealer, 1, index))
		}
		forge := func(packet []byte) {
			t.Helper()
			for bit := range len(packet) * 8 {
				forged := bytes.Clone(packet)
				forged[bit/8] ^= 1 << (bit % 8)
				out, err := opener.Open(forged)
				if !errors.Is(err, ErrAuthentication) && !errors.Is(err, ErrMalformed) &&
					!errors.Is(err, ErrReplayed) || out != nil {
					t.Fatalf("%s: with bit %d changed: %d bytes, %v", p, bit, len(out), err)
				}
			}
		}
		forge(sealed)
		if n := len(opener.opened.bySSRC); n != 0 {
			t.Fatalf("%s: forged packets made the state of %d streams", p, n)
		}
		mustOpen(t, opener, sealed, 1000)
		for i, packet := range following {
			before := *opener.opened.last
			forge(packet)
			if after := opener.opened.last; after.highest != before.highest || after.lowest != before.lowest {
				t.Fatalf("%s: forged packets moved the window from %d to %d", p, before.highest, after.highest)
			}
			mustOpen(t, opener, packet, uint64(1001+i))
		}
		if n := len(opener.opened.bySSRC); n != 1 {
			t.Errorf("%s: state of %d streams", p, n)
		}
	}
}

func TestRTCPForgeries(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 64)
		for range 3 {
			sealed, err := sealer.SealRTCP(make([]byte, 0, 200), compound(t, 1))
			if err != nil {
				t.Fatal(err)
			}
			known := len(opener.openedRTCP.bySSRC)
			for bit := range len(sealed) * 8 {
				forged := bytes.Clone(sealed)
				forged[bit/8] ^= 1 << (bit % 8)
				out, err := opener.OpenRTCP(forged)
				if !errors.Is(err, ErrAuthentication) && !errors.Is(err, ErrMalformed) &&
					!errors.Is(err, ErrReplayed) || out != nil {
					t.Fatalf("%s: with bit %d changed: %d bytes, %v", p, bit, len(out), err)
				}
			}
			if n := len(opener.openedRTCP.bySSRC); n != known {
				t.Fatalf("%s: forged packets made state: %d streams, expected %d", p, n, known)
			}
			if _, err := opener.OpenRTCP(sealed); err != nil {
				t.Fatalf("%s: %v", p, err)
			}
		}
	}
}

func TestTooManyStreams(t *testing.T) {
	for _, p := range []Profile{AES128GCM, AES128CMHMACSHA180} {
		sealer, opener := newPair(t, p, 64)
		for ssrc := range uint32(maxStreams) {
			mustOpen(t, opener, mustSeal(t, sealer, ssrc, 5), 5)
			sealed, err := sealer.SealRTCP(make([]byte, 0, 200), compound(t, ssrc))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := opener.OpenRTCP(sealed); err != nil {
				t.Fatal(err)
			}
		}
		mustRefuse(t, opener, mustSeal(t, sealer, maxStreams, 5), 5, ErrTooManyStreams)
		mustOpen(t, opener, mustSeal(t, sealer, 0, 6), 6)
		sealed, err := sealer.SealRTCP(make([]byte, 0, 200), compound(t, maxStreams))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opener.OpenRTCP(sealed); !errors.Is(err, ErrTooManyStreams) {
			t.Errorf("%s: RTCP of one stream more gives %v", p, err)
		}
	}
}

// TestDifferential passes the packets of a bad network to an Opener and to Pion: lost, reordered, late, duplicated,
// forged, and with gaps larger than the rollover counter can follow. Both must have the same results.
func TestDifferential(t *testing.T) {
	for _, p := range profiles {
		// Pion forgets the oldest packets of windows that are not a multiple of 64.
		for _, window := range []int{64, 960, 8192} {
			_, opener := newPair(t, p, window)
			sealing, opening := newPionContext(t, p), newPionContext(t, p, pion.SRTPReplayProtection(uint(window)))
			random := rand.New(rand.NewPCG(uint64(p), uint64(window)))
			verdicts := make(map[error]int)
			next := [2]uint64{random.Uint64N(65536), random.Uint64N(65536)}
			for range 20000 {
				ssrc := random.IntN(2)
				var index uint64
				switch random.IntN(12) {
				case 0:
					index = next[ssrc] - min(next[ssrc], random.Uint64N(uint64(window)*2))
				case 1:
					index = next[ssrc] - min(next[ssrc], random.Uint64N(20))
				case 2:
					next[ssrc] += random.Uint64N(2000)
					index = next[ssrc]
				case 3:
					index = next[ssrc] - min(next[ssrc], random.Uint64N(70000))
				case 4:
					index = next[ssrc] + random.Uint64N(10)
					if random.IntN(100) == 0 {
						index += random.Uint64N(70000)
					}
				default:
					index = next[ssrc]
					next[ssrc]++
				}
				raw, err := header(uint32(ssrc), uint16(index)).Marshal()
				if err != nil {
					t.Fatal(err)
				}
				raw = append(raw, payloadOf(index)...)
				sealing.SetROC(uint32(ssrc), uint32(index>>16))
				sealed, err := sealing.EncryptRTP(nil, raw, nil)
				if err != nil {
					t.Fatal(err)
				}
				if random.IntN(20) == 0 {
					sealed[random.IntN(len(sealed)-8)+8] ^= 1 << random.IntN(8)
				}
				want, wantErr := opening.DecryptRTP(nil, bytes.Clone(sealed), nil)
				got, err := opener.Open(sealed)
				verdict := verdictOf(wantErr)
				if !errors.Is(err, verdict) || !bytes.Equal(got, want) {
					t.Fatalf("%s, window %d, packet %d: %v, expected %v (%v)", p, window, index, err, verdict, wantErr)
				}
				verdicts[verdict]++
			}
			for _, verdict := range []error{nil, ErrAuthentication, ErrReplayed} {
				if verdicts[verdict] < 100 {
					t.Errorf("%s, window %d: only %d packets with the verdict %v", p, window,
						verdicts[verdict], verdict)
				}
			}
		}
	}
}

// verdictOf returns this package's error for an error of Pion.
func verdictOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pion.ErrFailedToVerifyAuthTag):
		return ErrAuthentication
	}
	return ErrReplayed
}

// TestConcurrency seals and opens RTP and RTCP at the same time, for the race detector.
func TestConcurrency(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 64)
		var group sync.WaitGroup
		group.Go(func() {
			for index := range uint64(2000) {
				sealed, err := sealer.Seal(make([]byte, 0, 1500), header(1, uint16(index)), payloadOf(index))
				if err == nil {
					_, err = opener.Open(sealed)
				}
				if err != nil {
					t.Errorf("%s, RTP: %v", p, err)
					return
				}
			}
		})
		packet := compound(t, 1)
		group.Go(func() {
			for range 2000 {
				sealed, err := sealer.SealRTCP(make([]byte, 0, 200), packet)
				if err == nil {
					_, err = opener.OpenRTCP(sealed)
				}
				if err != nil {
					t.Errorf("%s, RTCP: %v", p, err)
					return
				}
			}
		})
		group.Wait()
	}
}

// TestRepeats: authentic copies of opened packets are repeats while they are in the window.
func TestRepeats(t *testing.T) {
	for _, p := range profiles {
		sealer, opener := newPair(t, p, 64)
		sealed := make(map[uint64][]byte)
		for _, index := range []uint64{65500, 65530, 65550, 65560, 65700} {
			sealed[index] = mustSeal(t, sealer, 1, index)
		}
		repeats := func(index uint64, want bool) {
			t.Helper()
			if got := opener.Repeats(bytes.Clone(sealed[index])); got != want {
				t.Errorf("profile %v: packet %d repeats: %t, expected %t", p, index, got, want)
			}
		}
		repeats(65530, false)
		mustOpen(t, opener, sealed[65530], 65530)
		repeats(65530, true)
		repeats(65530, true)
		repeats(65550, false)
		mustOpen(t, opener, sealed[65560], 65560)
		mustOpen(t, opener, sealed[65550], 65550)
		repeats(65550, true)
		repeats(65530, true)
		repeats(65500, false)
		forged := bytes.Clone(sealed[65550])
		forged[len(forged)-1] ^= 1
		if opener.Repeats(forged) || opener.Repeats(forged[:5]) || opener.Repeats(nil) {
			t.Errorf("profile %v: a forged packet repeats", p)
		}
		// Repeats has changed nothing.
		mustRefuse(t, opener, sealed[65550], 65550, ErrReplayed)
		mustOpen(t, opener, sealed[65700], 65700)
		repeats(65560, false)
	}
}
