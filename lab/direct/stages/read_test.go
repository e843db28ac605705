package stages

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadWrittenLog: a log is read as it was written.
func TestReadWrittenLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "frames.jsonl")
	log, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	var want [2]Record
	want[0].Sent = Sent{Frame: 7, SourceFrame: 12, Capture: 1_700_000_000_000_000, Points: 3, Hash: 1 << 63}
	want[0].Received = Received{Frame: 7, Decoded: 5, ReceivedHash: 1 << 63}
	want[0].Outcome = Intact
	want[1].Sent.Frame, want[1].Received.Frame, want[1].Outcome = 8, 8, Lost
	for i := range want {
		log.Write(&want[i])
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	got, err := Read(file)
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{\"frame\":1}\nframe 2\n": "line 2", "{\"hash\":1}": "line 1", "{\"frame\":-1}": "line 1",
		strings.Repeat(" ", maxLine+1): "too long",
	} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, ErrLog) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want an error with %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"frame\":1,\"hash\":\"12\",\"outcome\":\"intact\"}\n{\"frame\":2}\n"))
	f.Add([]byte("[]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		records, err := Read(bytes.NewReader(text))
		if err != nil && !errors.Is(err, ErrLog) || len(records) > len(text) {
			t.Errorf("%d records of %d bytes, %v", len(records), len(text), err)
		}
	})
}
