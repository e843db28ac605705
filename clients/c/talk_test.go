package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/testbed"
)

// TestTalk has two participants in C hear each other and exchange messages, encrypted, over TLS with a certificate
// authority of their own.
func TestTalk(t *testing.T) {
	program := compile(t, filepath.Join("testdata", "talk.c"), sanitizer(t))
	files := certificate.New(t, "127.0.0.1")
	config := testbed.ConferenceConfig()
	config.Server.TLSCert, config.Server.TLSKey = files.Certificate, files.Key
	conference, err := testbed.NewConference(config, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conference.Close)
	out, err := run(t, program, conference.Server.URL(), "correct horse battery", files.Certificate)
	if err != nil || out != "sound\nmessages\nattributes\nclosed\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWithoutOpus uses the library beside a file that is not libopus: sound is refused, everything else works.
func TestWithoutOpus(t *testing.T) {
	folder, compiler := library(t)
	program := compile(t, filepath.Join("testdata", "talk.c"))
	alone := t.TempDir()
	if err := os.Link(filepath.Join(folder, "libvolsfu.so"), filepath.Join(alone, "libvolsfu.so")); err != nil {
		t.Skipf("the library cannot be linked to another folder: %v", err)
	}
	empty := exec.Command(compiler, "-shared", "-o", filepath.Join(alone, "libopus.so.0"), "-x", "c", os.DevNull)
	if out, err := empty.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("LD_LIBRARY_PATH", alone)
	// The program names the folder of the complete library, which LD_LIBRARY_PATH precedes only if it is a RUNPATH.
	out, err := run(t, program, open(t).Server.URL(), "", "")
	if err == nil || !strings.Contains(out, "&listener): -12 (no Opus: install libopus") {
		t.Errorf("%v\n%s", err, out)
	}
}
