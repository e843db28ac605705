package edge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// systemBPF is the usual place of a BPF file system.
	systemBPF = "/sys/fs/bpf"
	// mapsFolder and linksFolder are the folders of an edge's pins.
	mapsFolder, linksFolder = "maps", "links"
)

// pins are the files that keep the programs and maps of an edge when its process ends.
type pins struct{ dir string }

// findPins returns the place of an edge's pins: STATE/bpf/NAME if STATE/bpf is a BPF file system, as the systemd unit
// makes it for a user that may not enter /sys/fs/bpf; else /sys/fs/bpf/volnet/NAME. With mount, it mounts a BPF file
// system at /sys/fs/bpf if there is none.
func findPins(c *Config, mount bool) (pins, error) {
	own := filepath.Join(c.State, "bpf")
	if isBPF(own) {
		return pins{filepath.Join(own, c.Name)}, nil
	}
	if !isBPF(systemBPF) && mount {
		if err := mountBPF(); err != nil {
			return pins{}, err
		}
	}
	return pins{filepath.Join(systemBPF, "volnet", c.Name)}, nil
}

// isBPF reports whether a folder is in a BPF file system.
func isBPF(dir string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(dir, &stat) == nil && stat.Type == unix.BPF_FS_MAGIC
}

// mountBPF mounts a BPF file system at /sys/fs/bpf. A mount in a mount namespace of the process would end with it, and
// take the pins along, so the namespace must be that of process 1.
func mountBPF() error {
	const advice = "mount one first: mount -t bpf bpf " + systemBPF
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return fmt.Errorf("read the mount namespace of the process: %w", err)
	}
	first, err := os.Readlink("/proc/1/ns/mnt")
	if err != nil {
		return fmt.Errorf("%w: there is no BPF file system at %s, and the process may not mount one; %s", ErrPrivileges,
			systemBPF, advice)
	}
	if own != first {
		return fmt.Errorf("%w: there is no BPF file system at %s, and the process is in a mount namespace of its own, "+
			"whose mounts end with it; %s", ErrPrivileges, systemBPF, advice)
	}
	if err := unix.Mount("bpf", systemBPF, "bpf", 0, "mode=0700"); err != nil {
		return fmt.Errorf("there is no BPF file system at %s, and mounting one failed; %s: %w", systemBPF, advice,
			denied(err))
	}
	return nil
}

// exist reports whether an edge of the name left pins.
func (p pins) exist() bool {
	_, err := os.Stat(p.dir)
	return err == nil
}

// create makes the folders.
func (p pins) create() error {
	for _, dir := range []string{p.maps(), p.links()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the folder of the pins: %w", denied(err))
		}
	}
	return nil
}

func (p pins) maps() string  { return filepath.Join(p.dir, mapsFolder) }
func (p pins) links() string { return filepath.Join(p.dir, linksFolder) }

// link returns the pin of a link.
func (p pins) link(name string) string { return filepath.Join(p.links(), name) }

// names returns the names of the files in one of the folders.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pins: %w", denied(err))
	}
	list := make([]string, len(entries))
	for i, entry := range entries {
		list[i] = entry.Name()
	}
	return list, nil
}

// remove removes all pins and the folders. The programs whose links were pinned are detached already.
func (p pins) remove() error {
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove the pins: %w", denied(err))
	}
	// The folder of all edges goes with the last one.
	_ = os.Remove(filepath.Dir(p.dir))
	return nil
}
