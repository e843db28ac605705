package secure

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// record makes a DTLS 1.2 record.
func record(content byte, epoch uint16, body ...byte) []byte {
	r := []byte{content, 0xfe, 0xfd}
	r = binary.BigEndian.AppendUint16(r, epoch)
	r = append(r, 0, 0, 0, 0, 0, 1)
	r = binary.BigEndian.AppendUint16(r, uint16(len(body)))
	return append(r, body...)
}

// fragment makes a handshake fragment with length body bytes.
func fragment(total, number, offset, length int) []byte {
	f := []byte{1, byte(total >> 16), byte(total >> 8), byte(total), byte(number >> 8), byte(number)}
	f = append(f, byte(offset>>16), byte(offset>>8), byte(offset), byte(length>>16), byte(length>>8), byte(length))
	return append(f, make([]byte, length)...)
}

func TestRecordsThatAreTaken(t *testing.T) {
	hello := record(contentHandshake, 0, fragment(100, 0, 0, 100)...)
	for _, test := range []struct {
		name     string
		datagram []byte
		finished bool
		kept     int
	}{
		{"a hello", hello, false, len(hello)},
		{"a hello after the handshake", hello, true, 0},
		{"an empty message", record(contentHandshake, 0, fragment(0, 1, 0, 0)...), false, 25},
		{"two messages in a record", record(contentHandshake, 0,
			append(fragment(8, 1, 0, 8), fragment(8, 2, 0, 8)...)...), false, 53},
		{"the middle of a message", record(contentHandshake, 0, fragment(100, 1, 20, 30)...), false, 55},
		// An empty fragment behind the beginning of its message ends a connection of dtls 3.1.8.
		{"an empty fragment at an offset", record(contentHandshake, 0, fragment(0, 0, 5, 0)...), false, 0},
		{"an empty fragment of a message", record(contentHandshake, 0, fragment(100, 0, 0, 0)...), false, 0},
		{"a fragment beyond its message", record(contentHandshake, 0, fragment(100, 1, 90, 11)...), false, 0},
		{"a fragment longer than its record", record(contentHandshake, 0, fragment(100, 1, 0, 100)[:50]...), false, 0},
		{"half a fragment's header", record(contentHandshake, 0, fragment(0, 1, 0, 0)[:6]...), false, 0},
		{"a record without a message", record(contentHandshake, 0), false, 0},
		{"a message that is too long", record(contentHandshake, 0, fragment(maxHandshake+1, 1, 0, 10)...), false, 0},
		{"a message of a far number", record(contentHandshake, 0, fragment(10, maxHandshakeNumber, 0, 10)...), false,
			0},
		{"a change of keys", record(contentChangeCipherSpec, 0, 1), false, 14},
		{"an alert", record(contentAlert, 0, 2, 40), false, 15},
		{"an alert after the handshake", record(contentAlert, 0, 1, 0), true, 0},
		{"a long alert", record(contentAlert, 0, 2, 40, 0), false, 0},
		{"data without protection", record(contentApplicationData, 0, 1, 2, 3), false, 0},
		{"a heartbeat", record(24, 0, 1), false, 0},
		{"protected data", record(contentApplicationData, 1, 1, 2, 3), true, 16},
		{"an unknown record of a later epoch", record(26, 1, 1, 2, 3), true, 0},
		{"half a record", hello[:20], false, 0},
		// The peer repeats its last flight since the answer was lost. The protected record requests the answer.
		{"a repeated last flight", append(bytes.Clone(hello), record(contentHandshake, 1, make([]byte, 40)...)...),
			true, 53},
	} {
		f := recordFilter{finished: test.finished}
		if kept := f.filter(bytes.Clone(test.datagram)); len(kept) != test.kept {
			t.Errorf("%s: %d of %d bytes are kept, expected %d", test.name, len(kept), len(test.datagram), test.kept)
		}
	}
}

// TestUnprotectedRecordsAreBounded sends hellos without end.
func TestUnprotectedRecordsAreBounded(t *testing.T) {
	var f recordFilter
	taken := 0
	for range 10_000 {
		taken += len(f.filter(record(contentHandshake, 0, fragment(1000, 0, 0, 1000)...)))
	}
	if taken == 0 || taken > maxPlaintext {
		t.Errorf("%d bytes are taken, expected some and %d at most", taken, maxPlaintext)
	}
	if protected := record(contentApplicationData, 1, 1); len(f.filter(protected)) != len(protected) {
		t.Error("a protected record is not taken")
	}
}

// TestClosedRecordsHoldNothing sends to a connection whose records are not read, before and after its end.
func TestClosedRecordsHoldNothing(t *testing.T) {
	c := NewRecords(nil)
	protected := record(contentApplicationData, 1, make([]byte, 1000)...)
	c.Write(bytes.Clone(protected))
	if size := c.in.Load().Size(); size < len(protected) {
		t.Fatalf("%d bytes wait to be read, expected a record of %d", size, len(protected))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c.Write(bytes.Clone(protected))
	if size := c.in.Load().Size(); size != 0 {
		t.Errorf("%d bytes are kept after the end, expected 0", size)
	}
	if n, _, err := c.in.Load().Read(make([]byte, 2000), nil); !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes were read and %v, expected the end", n, err)
	}
}

// FuzzRecords: the output of the filter is a sequence of records that the filter would keep again, and is not longer
// than the input.
func FuzzRecords(f *testing.F) {
	f.Add(record(contentHandshake, 0, fragment(100, 0, 0, 100)...), false)
	f.Add(append(record(contentAlert, 0, 2, 40), record(contentHandshake, 1, 1, 2, 3)...), true)
	f.Fuzz(func(t *testing.T, datagram []byte, finished bool) {
		before := len(datagram)
		first := recordFilter{finished: finished}
		kept := first.filter(bytes.Clone(datagram))
		if len(kept) > before {
			t.Fatalf("%d of %d bytes are kept", len(kept), before)
		}
		again := recordFilter{finished: finished}
		if twice := again.filter(bytes.Clone(kept)); !bytes.Equal(twice, kept) {
			t.Fatalf("of %x a second filter keeps %x", kept, twice)
		}
	})
}
