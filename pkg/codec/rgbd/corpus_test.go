package rgbd

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// corpusFile contains inputs that FuzzDecode found interesting, with the results of decoding, for other
// implementations. Frames whose only error is in the coded data of the image are left out: image decoders differ.
const corpusFile = "testdata/corpus.json"

// TestCorpus checks the decoder against the corpus. With -update it computes the results again, without changing the
// frames.
func TestCorpus(t *testing.T) {
	text, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	var all, kept []vector
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("the corpus is empty")
	}
	for _, want := range all {
		got, err := described(want.Name, want.Data)
		if err == nil || !strings.Contains(err.Error(), "baseline JPEG image") {
			kept = append(kept, got)
		}
		if *update {
			continue
		}
		if got.Error != want.Error || got.Points != want.Points || got.DepthSum != want.DepthSum {
			t.Errorf("%s: %d points, sum %d, error %q (%v), want %d, %d, %q", want.Name, got.Points, got.DepthSum,
				got.Error, err, want.Points, want.DepthSum, want.Error)
		}
	}
	if *update {
		text, err := json.MarshalIndent(kept, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(corpusFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
