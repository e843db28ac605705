package signal

import (
	"sync"
	"testing"
)

// TestShared encodes a shared message in several goroutines concurrently: all get the same text.
func TestShared(t *testing.T) {
	m := &ParticipantJoined{Participant: Participant{Identity: "ada"}}
	want, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	Share(m)
	texts := make([][]byte, 8)
	var running sync.WaitGroup
	for i := range texts {
		running.Go(func() {
			text, err := Encode(m)
			if err != nil {
				t.Error(err)
			}
			texts[i] = text
		})
	}
	running.Wait()
	for i, text := range texts {
		if string(text) != string(want) || &text[0] != &texts[0][0] {
			t.Errorf("text %d is %s at %p, expected %s at %p", i, text, text, want, texts[0])
		}
	}
}
