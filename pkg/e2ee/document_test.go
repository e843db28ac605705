package e2ee

import (
	"bytes"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocument compares the example of docs/encryption.md with the first test vector.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/encryption.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```hex frame\n(.*?)^```$").FindSubmatch(text)
	if block == nil {
		t.Fatal("the document has no block hex frame")
	}
	digits := regexp.MustCompile(`#.*`).ReplaceAllString(string(block[1]), "")
	got, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	if err != nil {
		t.Fatal(err)
	}
	v := read(t).Sealed[0]
	if want := append(bytes.Clone(v.Prefix), v.Ciphertext...); !bytes.Equal(got, want) {
		t.Errorf("the document says\n%x, expected\n%x", got, want)
	}
}
