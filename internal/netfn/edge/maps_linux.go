package edge

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/volsfu/volsfu/internal/netfn/edge/bpf"
)

// formats are the numbers of formats in the maps.
var formats = map[string]uint8{FormatEncapsulated: bpf.FormatEncapsulated, FormatStamped: bpf.FormatStamped}

// loadSender loads the sender's programs with the pinned maps of an earlier process, or with new maps that it pins.
func loadSender(p pins) (*bpf.SenderObjects, error) {
	spec, err := bpf.LoadSender()
	if err != nil {
		return nil, fmt.Errorf("read the sender's programs: %w", err)
	}
	objects := new(bpf.SenderObjects)
	if err := spec.LoadAndAssign(objects, p.options()); err != nil {
		return nil, fmt.Errorf("load the sender's programs: %w", denied(err))
	}
	return objects, nil
}

// loadReceiver is loadSender for the receiver.
func loadReceiver(p pins) (*bpf.ReceiverObjects, error) {
	spec, err := bpf.LoadReceiver()
	if err != nil {
		return nil, fmt.Errorf("read the receiver's programs: %w", err)
	}
	objects := new(bpf.ReceiverObjects)
	if err := spec.LoadAndAssign(objects, p.options()); err != nil {
		return nil, fmt.Errorf("load the receiver's programs: %w", denied(err))
	}
	return objects, nil
}

// checkPrograms loads the programs and closes them.
func checkPrograms(c *Config) error {
	for _, side := range []struct {
		configured bool
		load       func() (*ebpf.CollectionSpec, error)
	}{{c.Send != nil, bpf.LoadSender}, {c.Receive != nil, bpf.LoadReceiver}} {
		if !side.configured {
			continue
		}
		spec, err := side.load()
		if err != nil {
			return fmt.Errorf("read the programs: %w", err)
		}
		for _, m := range spec.Maps {
			m.Pinning = ebpf.PinNone
		}
		programs, err := ebpf.NewCollection(spec)
		if err != nil {
			return fmt.Errorf("load the programs: %w", denied(err))
		}
		programs.Close()
	}
	return nil
}

// options names the folder of the maps.
func (p pins) options() *ebpf.CollectionOptions {
	return &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: p.maps()}}
}

// syncMap makes the entries of a hash or a trie those wanted.
func syncMap[K comparable, V any](m *ebpf.Map, wanted map[K]V) error {
	var key K
	var value V
	var stale []K
	entries := m.Iterate()
	for entries.Next(&key, &value) {
		if _, ok := wanted[key]; !ok {
			stale = append(stale, key)
		}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("read the map %s: %w", m, err)
	}
	for key, value := range wanted {
		if err := m.Put(key, value); err != nil {
			return fmt.Errorf("write the map %s: %w", m, err)
		}
	}
	for _, key := range stale {
		if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("write the map %s: %w", m, err)
		}
	}
	return nil
}

// overhead returns the bytes of the headers of a copy.
func overhead(format string, outer netip.Addr) int {
	switch {
	case format != FormatEncapsulated:
		return 0
	case outer.Is4():
		return bpf.Overhead4
	default:
		return bpf.Overhead6
	}
}

// putAt writes the entry of an array.
func putAt(m *ebpf.Map, index int, value any) error {
	if err := m.Put(uint32(index), value); err != nil {
		return fmt.Errorf("write the map %s: %w", m, err)
	}
	return nil
}
