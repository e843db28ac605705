package transport

import (
	"testing"
	"time"
)

// TestInterfacesAreShared expects one list for all callers within interfacesAge, and a new list afterwards.
func TestInterfacesAreShared(t *testing.T) {
	var list interfaceList
	now := time.Unix(0, 0)
	current := func() any {
		t.Helper()
		c, err := list.current(now)
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.Interfaces()
		if err != nil || len(all) == 0 {
			t.Fatalf("%d interfaces, %v, expected loopback at least", len(all), err)
		}
		return c
	}
	first := current()
	now = now.Add(interfacesAge - 1)
	if current() != first {
		t.Errorf("another list after %v", interfacesAge-1)
	}
	now = now.Add(1)
	if current() == first {
		t.Errorf("the same list after %v", interfacesAge)
	}
}
