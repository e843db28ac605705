package window

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/test/transcript"
)

// TestTranscripts plays files with two commands: "restart EPOCH" and "add EPOCH NUMBER...". The output of add is the
// verdict on each number.
func TestTranscripts(t *testing.T) {
	transcript.PlaySteps(t, "testdata/*.txt", func(t *testing.T) func([]string) string {
		var w Window
		return func(words []string) string {
			var epoch uint16
			if _, err := fmt.Sscan(words[1], &epoch); err != nil {
				t.Fatalf("epoch in %v: %v", words, err)
			}
			if words[0] == "restart" {
				w.Restart(epoch)
				return ""
			}
			var verdicts []string
			for _, word := range words[2:] {
				var number uint32
				if _, err := fmt.Sscan(word, &number); err != nil {
					t.Fatalf("number in %v: %v", words, err)
				}
				verdicts = append(verdicts, w.Add(epoch, number).String())
			}
			return strings.Join(verdicts, " ")
		}
	})
}

// TestEveryNumberOnce delivers three copies of each number, displaced by up to 4,096, over the wrap of the number. Each
// number is first once.
func TestEveryNumberOnce(t *testing.T) {
	const count, displacement = 200_000, 4096
	random := rand.New(rand.NewPCG(3, 4))
	due := make([][]uint32, count+displacement)
	for i := range uint32(count) {
		for range 3 {
			at := int(i) + random.IntN(displacement)
			due[at] = append(due[at], i)
		}
	}
	var w Window
	w.Restart(9)
	first := make([]int, count)
	start := ^uint32(0) - count/2
	for _, numbers := range due {
		for _, i := range numbers {
			switch w.Add(9, start+i) {
			case First:
				first[i]++
			case Outside:
				t.Fatalf("number %d is outside the window", i)
			}
		}
	}
	for i, n := range first {
		if n != 1 {
			t.Fatalf("number %d was first %d times", i, n)
		}
	}
}

// FuzzWindow checks the promises of a window against a set of all numbers seen: a repeat has been seen, and a number
// that has been seen is not first again unless a number Size - 31 or more ahead of it has arrived.
func FuzzWindow(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 128, 0, 255, 255, 128, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var w Window
		w.Restart(1)
		seen := map[uint32]bool{}
		var number, newest uint32
		for ; len(b) >= 4; b = b[4:] {
			// Steps of at most 2^16, so that no number comes again after a wrap.
			number += uint32(int32(binary.BigEndian.Uint32(b)) % (1 << 16))
			if len(seen) == 0 || int32(number-newest) > 0 {
				newest = number
			}
			verdict := w.Add(1, number)
			if verdict == Repeat && !seen[number] {
				t.Fatalf("number %d is a repeat, but was never seen", number)
			}
			if verdict == First && seen[number] && newest-number < Size-31 {
				t.Fatalf("number %d is first twice, %d behind the newest", number, newest-number)
			}
			seen[number] = true
		}
	})
}
