package payload

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/race"
)

// TestBlocks checks the geometry of parity blocks: every fragment belongs to one block, source
// shards come first, and no block exceeds its limits.
func TestBlocks(t *testing.T) {
	for _, source := range []int{1, 2, 199, 200, 201, 399, 400, 401, 3060, 6993, 14665, 65535} {
		for _, parity := range []int{0, 1, 7, MaxParity(source)} {
			blocks := blockCount(source)
			total := 0
			for block := range blocks {
				sources, all := shardsOf(source, block, blocks), shardsOf(source+parity, block, blocks)
				if sources < 1 || sources > blockSource || all > blockTotal || all < sources {
					t.Fatalf(
						"%d + %d fragments: block %d of %d has %d source fragments of %d",
						source,
						parity,
						block,
						blocks,
						sources,
						all,
					)
				}
				if last := block + (sources-1)*blocks; last >= source || last+blocks < source {
					t.Fatalf(
						"%d + %d fragments: shard %d of block %d is not its last source fragment",
						source,
						parity,
						sources-1,
						block,
					)
				}
				total += all
			}
			if total != source+parity {
				t.Fatalf("%d + %d fragments: blocks have %d", source, parity, total)
			}
		}
	}
}

// TestParityIsCauchy computes the parity as docs/payload.md defines it, bit by bit.
func TestParityIsCauchy(t *testing.T) {
	multiply := func(a, b byte) (product byte) {
		for ; b > 0; b >>= 1 {
			if b&1 != 0 {
				product ^= a
			}
			carry := a & 0x80
			if a <<= 1; carry != 0 {
				a ^= 0x1d
			}
		}
		return product
	}
	invert := func(a byte) byte {
		for b := 1; b < 256; b++ {
			if multiply(a, byte(b)) == 1 {
				return byte(b)
			}
		}
		return 0
	}
	const parity = 5
	data := testData(401*FragmentSize - 100)
	var f Fragmenter
	if err := f.Begin(Descriptor{Parity: parity}, data); err != nil {
		t.Fatal(err)
	}
	const source, blocks = 401, 3
	padded := append(bytes.Clone(data), make([]byte, 100)...)
	for p := range parity {
		index := source + p
		_, got, err := f.Fragment(index)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, FragmentSize)
		block, row := index%blocks, index/blocks
		for i := block; i < source; i += blocks {
			factor := invert(byte(row) ^ byte(i/blocks))
			for at := range want {
				want[at] ^= multiply(factor, padded[i*FragmentSize+at])
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("parity fragment %d differs", index)
		}
	}
}

func TestParityRecovers(t *testing.T) {
	tests := []struct {
		size, parity int
		lose         string
	}{
		{
			0,
			1,
			"one",
		}, {1, 1, "one"}, {1, 3, "most"}, {1144, 1, "one"}, {1145, 2, "most"}, {5000, 2, "tail"}, {150_000, 14, "most"},
		{
			150_000,
			14,
			"burst",
		}, {150_000, 1, "one"}, {200 * 1144, 56, "most"}, {200*1144 + 1, 20, "burst"}, {3_500_000, 320, "burst"},
		{3_500_000, 320, "most"}, {20_000, 230, "source"}, {3000, 0, "none"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%d bytes, %d parity, %s", test.size, test.parity, test.lose), func(t *testing.T) {
			data := testData(test.size)
			packets := packetsOf(t, Descriptor{Parity: uint16(test.parity), Frame: 9}, data)
			source := SourceFragments(test.size)
			lost := map[int]bool{}
			random := rand.New(rand.NewPCG(1, 2))
			switch blocks := blockCount(source); test.lose {
			case "one":
				lost[random.IntN(source)] = true
			case "tail":
				lost[source-1], lost[source-2] = true, true
			case "burst":
				// Every block has at least parity div blocks parity fragments: as many consecutive
				// losses can always be recovered.
				for i := range test.parity / blocks * blocks {
					lost[source/3+i] = true
				}
			case "most":
				for block := range blocks {
					total := shardsOf(len(packets), block, blocks)
					for _, shard := range random.Perm(total)[:total-shardsOf(source, block, blocks)] {
						lost[block+shard*blocks] = true
					}
				}
			case "source":
				for i := range source {
					lost[i] = true
				}
			}
			r := NewReassembler(DefaultConfig())
			var frame *Frame
			for _, i := range random.Perm(len(packets)) {
				if lost[i] {
					continue
				}
				if done := push(t, r, packets[i], time.Unix(1, 0)); done != nil {
					frame = done
				}
			}
			if frame == nil {
				t.Fatalf("not complete with %d of %d packets lost", len(lost), len(packets))
			}
			if !bytes.Equal(frame.Data, data) {
				t.Fatal("data differs")
			}
			if stats := r.Stats(); int(stats.Recovered) != frame.Recovered ||
				test.lose == "source" && frame.Recovered != source {
				t.Fatalf("recovered %d, counted %d", frame.Recovered, stats.Recovered)
			}
		})
	}
}

// TestFirstParitySpreads expects that the first parity packets are spread evenly over the blocks,
// so that any part of the parity protects all blocks equally.
func TestFirstParitySpreads(t *testing.T) {
	for _, source := range []int{1, 200, 201, 399, 400, 3060, 14665} {
		blocks := blockCount(source)
		for parity := range source/4 + 1 {
			least, most := blockTotal, 0
			for block := range blocks {
				n := shardsOf(source+parity, block, blocks) - shardsOf(source, block, blocks)
				least, most = min(least, n), max(most, n)
			}
			if most-least > 1 {
				t.Fatalf(
					"%d source fragments: the first %d of parity are %d to %d per block",
					source,
					parity,
					least,
					most,
				)
			}
		}
	}
}

// TestPartOfTheParity completes frames with much parity, of which only the first packets were sent,
// from as many packets as there are source packets. The prefix is among the losses.
func TestPartOfTheParity(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	r := NewReassembler(DefaultConfig())
	for number := range uint32(200) {
		prefix := Prefix{FourCC: [4]byte{'t', 'e', 's', 't'}, Capture: time.Unix(1_800_000_000, int64(number)).UTC()}
		data := testData(1 + random.IntN(190*FragmentSize-PrefixSize))
		packets := packetsOf(
			t,
			Descriptor{Prefixed: true, Frame: number, Parity: 60},
			append(prefix.AppendTo(nil), data...),
		)
		source := len(packets) - 60
		sent := random.IntN(60)
		order := random.Perm(source + sent)
		// The prefix is in the first packet, which comes last in the order if packets may be lost.
		for i, index := range order {
			if index == 0 && sent > 0 {
				order[i], order[len(order)-1] = order[len(order)-1], 0
			}
		}
		var frame *Frame
		for _, index := range order[:source] {
			if done := push(t, r, packets[index], time.Unix(1, 0)); done != nil {
				frame = done
			}
		}
		if frame == nil || !bytes.Equal(frame.Data, data) || frame.Prefix != prefix {
			t.Fatalf("frame %d of %d packets is not complete with the first %d parity packets", number, source, sent)
		}
		frame.Release()
	}
}

// TestRecoveryAllocations expects that recovery reuses memory and does not allocate.
func TestRecoveryAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes pools forget")
	}
	packets := packetsOf(t, Descriptor{Parity: 14}, testData(150_000))
	r := NewReassembler(DefaultConfig())
	number := uint32(0)
	if n := testing.AllocsPerRun(100, func() {
		number++
		for i, packet := range packets {
			if i%26 == 3 {
				continue
			}
			setFrame(packet, number)
			if done := push(t, r, packet, time.Unix(1, 0)); done != nil {
				done.Release()
			}
		}
	}); n >= 1 {
		t.Errorf("%v allocations per frame, expected none", n)
	}
}

func TestTooFewForParity(t *testing.T) {
	packets := packetsOf(t, Descriptor{Parity: 2}, testData(10*FragmentSize))
	r := NewReassembler(DefaultConfig())
	for _, packet := range packets[3:] {
		if push(t, r, packet, time.Unix(1, 0)) != nil {
			t.Fatal("complete with 9 of 10 shards")
		}
	}
	given := r.Expire(time.Unix(2, 0), nil)
	if len(given) != 1 || given[0].Missing != 3 || given[0].Source != 10 {
		t.Fatalf("given up: %+v", given)
	}
}

func BenchmarkParity(b *testing.B) {
	data := testData(150_000)
	b.Run("encode", func(b *testing.B) {
		var f Fragmenter
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if err := f.Begin(Descriptor{Parity: 14}, data); err != nil {
				b.Fatal(err)
			}
			if _, _, err := f.Fragment(f.Packets() - 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("recover 5 losses", func(b *testing.B) {
		packets := packetsOf(b, Descriptor{Parity: 14}, data)
		r := NewReassembler(DefaultConfig())
		number := uint32(0)
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			number++
			var frame *Frame
			for i, packet := range packets {
				if i%26 == 3 {
					continue
				}
				setFrame(packet, number)
				if done := push(b, r, packet, time.Unix(1, 0)); done != nil {
					frame = done
				}
			}
			frame.Release()
		}
	})
}

// TestCompletable compares Completable, which knows only the lost indices, with a Reassembler that
// receives the packets: one block and more, all of the parity and part of it.
func TestCompletable(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	answers := map[bool]int{}
	for number := range uint32(300) {
		source := 1 + random.IntN([]int{20, 600}[number%2])
		parity := random.IntN(MaxParity(source) + 1)
		packets := packetsOf(t, Descriptor{Frame: number, Parity: uint16(parity)}, testData(source*FragmentSize))
		sent := source + random.IntN(parity+1)
		lost := random.Perm(len(packets))[:random.IntN(parity+2)]
		r := NewReassembler(DefaultConfig())
		complete := false
		for index, packet := range packets[:sent] {
			if slices.Contains(lost, index) {
				continue
			}
			if frame := push(t, r, packet, start); frame != nil {
				complete = true
				frame.Release()
				break
			}
		}
		if got := Completable(source, sent, lost); got != complete {
			t.Fatalf(
				"the first %d packets of %d + %d without %v: %t, and the frame's is %t",
				sent,
				source,
				parity,
				lost,
				got,
				complete,
			)
		}
		answers[complete]++
	}
	if answers[true] < 50 || answers[false] < 50 {
		t.Errorf("frames were complete or not %v times, expected 50 of each", answers)
	}
	if Completable(10, 9, nil) || Completable(0, 0, nil) || Completable(maxPackets+1, maxPackets+1, nil) ||
		!Completable(10, 10, []int{-1, 10}) {
		t.Error("the bounds do not hold")
	}
}
