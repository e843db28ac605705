package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key creates and reads a key.
func key(t *testing.T) *Key {
	t.Helper()
	name := filepath.Join(t.TempDir(), "lab.key")
	if err := CreateKey(name); err != nil {
		t.Fatal(err)
	}
	if err := CreateKey(name); !errors.Is(err, os.ErrExist) {
		t.Errorf("a key was replaced: %v", err)
	}
	k, err := ReadKey(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// meet connects two sides with their keys.
func meet(t *testing.T, agent, controller *Key) (accepted, dialled *Conn, acceptErr, dialErr error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		dialled, dialErr = controller.Dial(t.Context(), listener.Addr().String())
	}()
	socket, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted, acceptErr = agent.Accept(t.Context(), socket)
	<-done
	return accepted, dialled, acceptErr, dialErr
}

func TestConn(t *testing.T) {
	k := key(t)
	a, b, errA, errB := meet(t, k, k)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	want := &Message{Type: TypeOutput, Process: 3, Stream: 2, Data: []byte("text\n")}
	if err := a.Send(want); err != nil {
		t.Fatal(err)
	}
	got, err := b.Receive(time.Minute)
	if err != nil || got.Type != want.Type || got.Process != 3 || got.Stream != 2 || string(got.Data) != "text\n" {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := a.Send(&Message{Type: TypeOutput, Data: make([]byte, MaxMessage)}); !errors.Is(err, ErrMessage) {
		t.Errorf("a message of %d bytes: %v", MaxMessage, err)
	}
	if _, err := b.Receive(time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without a message: %v", err)
	}
}

// TestOtherKey: neither side accepts another key.
func TestOtherKey(t *testing.T) {
	_, dialled, errA, errB := meet(t, key(t), key(t))
	if errA == nil || !errors.Is(errB, ErrKey) {
		t.Errorf("got %v and %v", errA, errB)
	}
	if dialled != nil {
		t.Error("got a connection")
	}
}

func TestKeyFiles(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "lab.key")
	if err := CreateKey(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(name); !errors.Is(err, ErrKeyFile) || !strings.Contains(err.Error(), "644") {
		t.Errorf("a key that all may read: %v", err)
	}
	other := filepath.Join(folder, "other.key")
	if err := os.WriteFile(other, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(other); !errors.Is(err, ErrKeyFile) {
		t.Errorf("another file: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, data := range map[string][]byte{
		"length": {0xff, 0xff, 0xff, 0xff}, "json": {0, 0, 0, 1, '{'},
	} {
		if _, err := Read(bytes.NewReader(data)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Read(bytes.NewReader([]byte{0, 0, 0, 9, '{'})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// FuzzRead: any bytes are a message or an error.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"type":"hello","hello":{"protocol":1,"purpose":"control"}}`,
		`{"type":"start","process":1,"start":{"program":"vollab peer","arguments":[{"flag":"name","kind":"value"}]}}`,
		`{"type":"file","file":{"name":"x","data":"AA==","last":true}}`} {
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := Read(bytes.NewReader(data)); (m == nil) == (err == nil) {
			t.Errorf("got %v, %v", m, err)
		}
	})
}

const pmc = `sending: GET PORT_DATA_SET
	b8599f.fffe.aabbcc-1 seq 0 RESPONSE MANAGEMENT PORT_DATA_SET
		portIdentity            b8599f.fffe.aabbcc-1
		portState               SLAVE
		logMinDelayReqInterval  0
		peerMeanPathDelay       0
sending: GET CURRENT_DATA_SET
	b8599f.fffe.aabbcc-0 seq 1 RESPONSE MANAGEMENT CURRENT_DATA_SET
		stepsRemoved     1
		offsetFromMaster -37.0
		meanPathDelay    412.0
`

func TestParsePTP(t *testing.T) {
	p, err := ParsePTP(pmc)
	if err != nil || *p != (PTP{"SLAVE", -37, 412}) {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, text := range []string{"", strings.Replace(pmc, "SLAVE", "LISTENING", 1),
		strings.Replace(pmc, "-37.0", "x", 1), strings.Replace(pmc, "412.0", "1e30", 1)} {
		if _, err := ParsePTP(text); !errors.Is(err, ErrPTP) {
			t.Errorf("got %v for\n%s", err, text)
		}
	}
}
