//go:build linux

// Package leftover finds the programs, maps and pins of edges of `volnet`. Tests and checks of the pair use it.
package leftover

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/pin"
	"github.com/vishvananda/netlink"
)

// segmenter matches the names of the interfaces that cut super-packets.
var segmenter = regexp.MustCompile("^vn[0-9a-f]{8}[ab]$")

// directions are the places of programs at an interface: for TCX, and for filters of clsact.
var directions = []struct {
	tcx    ebpf.AttachType
	parent uint32
}{
	{ebpf.AttachTCXIngress, netlink.HANDLE_MIN_INGRESS},
	{ebpf.AttachTCXEgress, netlink.HANDLE_MIN_EGRESS},
}

// Attached returns the programs, filters and segmenter interfaces of edges in the calling thread's network namespace.
func Attached() (found []string, err error) {
	devices, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	for _, device := range devices {
		name := device.Attrs().Name
		if xdp := device.Attrs().Xdp; xdp != nil && xdp.Attached {
			found = append(found, "XDP at "+name)
		}
		for _, d := range directions {
			// Kernels without TCX refuse the query, and interfaces that cannot have filters the other one.
			attached, err := link.QueryPrograms(link.QueryOptions{Target: device.Attrs().Index, Attach: d.tcx})
			if err == nil && len(attached.Programs) > 0 {
				found = append(found, "TCX at "+name)
			}
			if filters, err := netlink.FilterList(device, d.parent); err == nil && len(filters) > 0 {
				found = append(found, "a filter at "+name)
			}
		}
		if segmenter.MatchString(name) {
			found = append(found, "the interface "+name)
		}
	}
	return found, nil
}

// Files returns the files that the edge of a name has in its folder of the state, without the lock and the
// configuration, and in the BPF file system below it.
func Files(state, name string) (found []string) {
	for _, file := range []string{filepath.Join("bpf", name), name + ".changes", name + ".sock"} {
		if _, err := os.Lstat(filepath.Join(state, file)); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, "the file "+file)
		}
	}
	return found
}

// Objects are the programs, maps and links of an edge in the kernel.
type Objects struct {
	programs map[ebpf.ProgramID]bool
	maps     map[ebpf.MapID]bool
	links    map[link.ID]bool
}

// Loaded returns the objects that are pinned in a folder, and the programs and maps that these use.
func Loaded(folder string) (Objects, error) {
	o := Objects{make(map[ebpf.ProgramID]bool), make(map[ebpf.MapID]bool), make(map[link.ID]bool)}
	for p, err := range pin.WalkDir(folder, nil) {
		if err == nil {
			err = o.add(p.Object)
		}
		if err != nil {
			return o, fmt.Errorf("the pins in %s: %w", folder, err)
		}
	}
	return o, nil
}

// add adds a pinned object.
func (o *Objects) add(object io.Closer) error {
	switch object := object.(type) {
	case *ebpf.Map:
		info, err := object.Info()
		if err != nil {
			return err
		}
		id, _ := info.ID()
		o.maps[id] = true
		return nil
	case *ebpf.Program:
		return o.addProgram(object)
	case link.Link:
		info, err := object.Info()
		if err != nil {
			return err
		}
		o.links[info.ID] = true
		program, err := ebpf.NewProgramFromID(info.Program)
		if err != nil {
			return err
		}
		defer func() { _ = program.Close() }()
		return o.addProgram(program)
	}
	return fmt.Errorf("it has the type %T", object)
}

// addProgram adds a program and its maps.
func (o *Objects) addProgram(program *ebpf.Program) error {
	info, err := program.Info()
	if err != nil {
		return err
	}
	id, _ := info.ID()
	o.programs[id] = true
	maps, _ := info.MapIDs()
	for _, id := range maps {
		o.maps[id] = true
	}
	return nil
}

// Count returns the number of objects.
func (o *Objects) Count() int { return len(o.programs) + len(o.maps) + len(o.links) }

// Left returns the objects that still exist. The kernel frees objects some milliseconds after their last use, and does
// not give their numbers to others soon.
func (o *Objects) Left() (found []string) {
	for id := range o.programs {
		if program, err := ebpf.NewProgramFromID(id); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, fmt.Sprintf("the program %d", id))
			_ = program.Close()
		}
	}
	for id := range o.maps {
		if m, err := ebpf.NewMapFromID(id); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, fmt.Sprintf("the map %d", id))
			_ = m.Close()
		}
	}
	for id := range o.links {
		if l, err := link.NewFromID(id); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, fmt.Sprintf("the link %d", id))
			if err == nil {
				_ = l.Close()
			}
		}
	}
	return found
}
