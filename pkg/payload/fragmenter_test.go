package payload

import "testing"

// TestReleasedFrame expects that a Fragmenter drops a released frame and then has no packets.
func TestReleasedFrame(t *testing.T) {
	var f Fragmenter
	if err := f.Begin(Descriptor{Parity: 1}, make([]byte, 2*FragmentSize)); err != nil || f.Packets() != 3 {
		t.Fatalf("%d packets, %v", f.Packets(), err)
	}
	f.Release()
	if f.data != nil || f.Packets() != 0 {
		t.Errorf("%d bytes in %d packets are kept", len(f.data), f.Packets())
	}
}
