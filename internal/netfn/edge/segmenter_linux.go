package edge

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"

	"github.com/vishvananda/netlink"
)

// segmenterPin is the pin of the program behind the segmenter. The pins of paths end in -in or -out.
const segmenterPin = "segmenter"

// segmenter is a pair of virtual interfaces that cuts UDP super-packets into segments before they are numbered.
// Segments over IPv6 have no counter from which a receiver could compute their numbers. Interfaces without checksum
// offload drop super-packets with the headers of copies. Packets enter at one end, which accepts one segment per
// packet, and a program reads them at the other end.
type segmenter struct{ entry, exit netlink.Link }

// segmenterNames returns the names of the ends. Interface names are too short for the names of edges.
func segmenterNames(edge string) (entry, exit string) {
	hash := fnv.New32a()
	hash.Write([]byte(edge))
	name := fmt.Sprintf("vn%08x", hash.Sum32())
	return name + "a", name + "b"
}

// makeSegmenter returns the segmenter of an edge, which an earlier process may have made.
func makeSegmenter(edge string) (*segmenter, error) {
	entry, exit := segmenterNames(edge)
	if _, err := netlink.LinkByName(entry); errors.As(err, &netlink.LinkNotFoundError{}) {
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.MTU, attributes.GSOMaxSegs = entry, maxMTU, 1
		pair := netlink.NewVeth(attributes)
		pair.PeerName = exit
		if err := netlink.LinkAdd(pair); err != nil {
			return nil, fmt.Errorf("make the interfaces %s and %s: %w", entry, exit, denied(err))
		}
	} else if err != nil {
		return nil, fmt.Errorf("read the interface %s: %w", entry, err)
	}
	s := &segmenter{}
	for name, end := range map[string]*netlink.Link{entry: &s.entry, exit: &s.exit} {
		device, err := netlink.LinkByName(name)
		if err != nil {
			return nil, fmt.Errorf("read the interface %s: %w", name, err)
		}
		// No neighbour discovery on a link without neighbours. Hosts without IPv6 have no such setting.
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
		if err := errors.Join(netlink.LinkSetARPOff(device), netlink.LinkSetUp(device)); err != nil {
			return nil, fmt.Errorf("set up the interface %s: %w", name, denied(err))
		}
		*end = device
	}
	return s, nil
}

// removeSegmenter removes the segmenter of an edge, if there is one. The other end goes as well.
func removeSegmenter(edge string) error {
	name, _ := segmenterNames(edge)
	device, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(device)
	}
	if err != nil {
		return fmt.Errorf("remove the interface %s: %w", name, denied(err))
	}
	return nil
}

// needsSegmenter reports whether super-packets may have to be cut: those of UDP over IPv6, and those that leave on an
// interface without checksum offload, which may be plugged in later.
func (c *Config) needsSegmenter() bool { return c.Send != nil && c.Send.Format == FormatEncapsulated }
